#include "daemon/ban_feed_metrics.h"

#include <chrono>
#include <limits>

#include "observe/families.h"

namespace sluice {

void add_ban_feed_metrics(const std::vector<BanFeedStanding>& feeds, Families& out) {
    if (feeds.empty())
        return;
    const auto add = [&](const char* name, const char* help, auto value) {
        out.begin(name, help, prometheus::MetricType::Gauge);
        for (const BanFeedStanding& feed : feeds)
            out.add({{"feed", feed.name}}, value(feed));
    };
    const auto now = std::chrono::steady_clock::now();
    add("sluice_feed_up", "1 where the last look at the feed was good",
        [](const BanFeedStanding& feed) { return feed.error ? 0.0 : 1.0; });
    add("sluice_feed_age_seconds",
        "Since the list was last known to be right; infinite: not since the start",
        [now](const BanFeedStanding& feed) {
            return feed.good_at ? std::chrono::duration<double>(now - *feed.good_at).count()
                                : std::numeric_limits<double>::infinity();
        });
    add("sluice_feed_entries", "Bans of the feed in the gate, as it was last written",
        [](const BanFeedStanding& feed) { return static_cast<double>(feed.entries.value_or(0)); });
    add("sluice_feed_left_out", "Lines, or decisions, that make no ban",
        [](const BanFeedStanding& feed) { return static_cast<double>(feed.left_out); });
    add("sluice_feed_held", "Entries of a list that waits to be accepted; 0: none waits",
        [](const BanFeedStanding& feed) { return static_cast<double>(feed.held.value_or(0)); });
}

}  // namespace sluice
