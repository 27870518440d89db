#include "feeds/ban_feeds.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <thread>
#include <utility>

#include "base/log.h"
#include "feeds/block_list.h"
#include "feeds/crowdsec.h"

namespace sluice {

namespace {

// Between two looks at whether something is due.
constexpr std::chrono::seconds kPause{1};

std::unique_ptr<FeedWorker> make_worker(const BanFeed& feed, const std::string& pin_dir) {
    if (feed.type == FeedType::crowdsec)
        return std::make_unique<Crowdsec>(feed, pin_dir);
    return std::make_unique<BlockList>(feed, pin_dir);
}

}  // namespace

class BanFeeds::Runner {
  public:
    Runner(const BanFeed& feed, const std::string& pin_dir)
        : feed_(feed),
          worker_(make_worker(feed, pin_dir)),
          thread_([this](const std::stop_token& stop) {
              run(stop);
              has_ended_ = true;
          }) {}

    [[nodiscard]] const BanFeed& feed() const { return feed_; }
    [[nodiscard]] BanFeedStanding standing() const { return worker_->standing(); }
    void ask_to_stop() { thread_.request_stop(); }
    [[nodiscard]] bool has_ended() const { return has_ended_; }

  private:
    void run(const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any wake;
        worker_->begin();
        while (!stop.stop_requested()) {
            try {
                worker_->step(std::chrono::steady_clock::now(), stop);
            } catch (const std::exception& error) {  // no memory for a list
                log_error("feed " + feed_.name, failed(error.what()));
            }
            std::unique_lock lock(mutex);
            (void)wake.wait_for(lock, stop, kPause, [] { return false; });
        }
    }

    const BanFeed feed_;
    std::unique_ptr<FeedWorker> worker_;
    std::atomic<bool> has_ended_ = false;
    std::jthread thread_;  // the last member: it ends before what it uses
};

BanFeeds::BanFeeds(std::string pin_dir) : pin_dir_(std::move(pin_dir)) {}

BanFeeds::~BanFeeds() {
    for (const auto& runner : running_)
        runner->ask_to_stop();
}

void BanFeeds::follow(const std::vector<BanFeed>& feeds) {
    const std::lock_guard lock(mutex_);
    std::erase_if(ending_, [](const auto& runner) { return runner->has_ended(); });
    std::vector<std::unique_ptr<Runner>> wanted;
    for (const BanFeed& feed : feeds) {
        const auto known = std::ranges::find_if(
            running_, [&](const auto& runner) { return runner && runner->feed() == feed; });
        wanted.push_back(known != running_.end() ? std::move(*known)
                                                 : std::make_unique<Runner>(feed, pin_dir_));
    }
    for (auto& runner : running_) {
        if (!runner)
            continue;
        runner->ask_to_stop();
        if (std::ranges::none_of(
                feeds, [&](const BanFeed& feed) { return feed.name == runner->feed().name; }))
            log(LogLevel::warning, "feed " + runner->feed().name +
                                       ": is no more; its bans end in time, or by: sluicectl bans "
                                       "flush --source " +
                                       runner->feed().name);
        ending_.push_back(std::move(runner));
    }
    running_ = std::move(wanted);
}

std::vector<BanFeedStanding> BanFeeds::standing() const {
    const std::lock_guard lock(mutex_);
    std::vector<BanFeedStanding> all;
    for (const auto& runner : running_)
        all.push_back(runner->standing());
    return all;
}

}  // namespace sluice
