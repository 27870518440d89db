// What all feeds have in common: something to do now and then, and a standing that others look at.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "feeds/gate_list.h"
#include "policy/ban_feed.h"

namespace sluice {

struct BanFeedStanding {
    std::string name;
    FeedType type = FeedType::automatic;
    std::string from;            // file or URL
    std::optional<Error> error;  // of the last look; none where that was good
    // The last look that was good; none: not since this daemon was started.
    std::optional<std::chrono::steady_clock::time_point> good_at;
    std::optional<size_t> entries;  // of the list in the gate, as it was last written
    size_t left_out = 0;            // lines, or decisions, that make no ban
    std::string left_out_first;     // why, of the first of them
    size_t spared = 0;              // not banned, because allowed, protected, private or one's own
    std::optional<size_t> held;     // entries of a list that waits to be accepted
};

class FeedWorker {
  public:
    using Time = std::chrono::steady_clock::time_point;

    // `reason` is that of its bans.
    FeedWorker(const BanFeed& feed, const std::string& pin_dir, const std::string& reason);
    virtual ~FeedWorker() = default;
    FeedWorker(const FeedWorker&) = delete;
    FeedWorker& operator=(const FeedWorker&) = delete;

    // Before the first step: what an earlier daemon has left in the gate.
    void begin();
    // Does what is due. It may wait, for servers and for other writers; little where a stop is
    // asked for.
    virtual void step(Time now, const std::stop_token& stop) = 0;

    // From any thread.
    [[nodiscard]] BanFeedStanding standing() const;

  protected:
    [[nodiscard]] const BanFeed& feed() const { return feed_; }
    [[nodiscard]] GateList& gate() { return gate_; }
    [[nodiscard]] const GateList& gate() const { return gate_; }

    template <class Change>
    void note(Change&& change) {
        const std::lock_guard lock(mutex_);
        change(standing_);
    }
    // How things are by now; logged where that changed.
    void tell(const Status& status);

  private:
    const BanFeed feed_;
    GateList gate_;
    mutable std::mutex mutex_;
    BanFeedStanding standing_;
};

}  // namespace sluice
