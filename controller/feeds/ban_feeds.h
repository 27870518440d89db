// All feeds of a configuration, each in a thread of its own: one slow server holds up no other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "feeds/feed_worker.h"

namespace sluice {

class BanFeeds {
  public:
    explicit BanFeeds(std::string pin_dir);
    ~BanFeeds();
    BanFeeds(const BanFeeds&) = delete;
    BanFeeds& operator=(const BanFeeds&) = delete;

    // From now on these: begins what is new, ends what is gone or other, leaves the rest alone.
    // Never waits. The bans of one that is gone end by themselves.
    void follow(const std::vector<BanFeed>& feeds);
    [[nodiscard]] std::vector<BanFeedStanding> standing() const;

  private:
    class Runner;

    std::string pin_dir_;
    mutable std::mutex mutex_;  // standing() is asked from other threads
    std::vector<std::unique_ptr<Runner>> running_;
    std::vector<std::unique_ptr<Runner>>
        ending_;  // told to, and perhaps in the middle of something
};

}  // namespace sluice
