// How the feeds of bans stand, as metrics.
#pragma once

#include <vector>

#include "feeds/feed_worker.h"

namespace sluice {

class Families;

// Nothing where there are none.
void add_ban_feed_metrics(const std::vector<BanFeedStanding>& feeds, Families& out);

}  // namespace sluice
