// How the fleet stands, in JSON and from the gate.
#pragma once

#include "cli/format.h"
#include "fleet/budget_sync.h"
#include "fleet/feed_sync.h"

namespace sluice::cli {

// The share that the gate holds of a budget, whoever put it there.
BudgetStanding standing_of_share(const Tables& tables, const Service& service, uint32_t service_id,
                                 Dimension dimension);

// `view` is null where there is none: then nothing is known of other hosts.
Json budget_json(const FleetStanding& standing, const FleetView* view);
// What a drill that is on is called, for people.
std::string drill_text(const Json& left_s);
// `redis` of status: "off", "up" or "down", and why it is not up. Where no budget is shared, the
// feed alone knows.
Json redis_json(const FleetStanding& standing, const FeedStanding& feed = {});
// `fleet` of status: how this host follows the feed of bans, allows and switches.
Json feed_json(const FeedStanding& feed);

}  // namespace sluice::cli
