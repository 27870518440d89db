#include "daemon/feed_thread.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/log.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;

// Between two looks at whether something is due.
constexpr auto kPause = 25ms;

// What operators want to find in the log: where something begins and ends.
class Changes {
  public:
    void tell(const FeedStanding& standing) {
        if (standing.error != error_ && !standing.error.empty())
            log(LogLevel::warning, "the fleet's feed: " + standing.error);
        else if (standing.error != error_)
            log(LogLevel::info, "the fleet's feed: Redis answers again");
        if (standing.lost > lost_)
            log(LogLevel::error,
                "Redis has lost " + std::to_string(standing.lost) +
                    " bans, allows or switches of the fleet that nobody took back. They hold. If "
                    "it is right that they have gone: sluicectl sync --accept-shrink");
        if (standing.refused > refused_)
            log(LogLevel::warning, "a ban of the fleet is not for this host: " + standing.refusal);
        error_ = standing.error;
        lost_ = standing.lost;
        refused_ = standing.refused;
    }

  private:
    std::string error_;
    size_t lost_ = 0;
    uint64_t refused_ = 0;
};

}  // namespace

FeedThread::FeedThread(const std::string& pin_dir, const std::string& state_dir,
                       const RedisDrill& drill)
    : sync_(pin_dir, state_dir, drill), thread_([this](const std::stop_token& stop) {
          std::mutex mutex;
          std::condition_variable_any wake;
          Changes changes;
          while (!stop.stop_requested()) {
              if (compare_soon_.exchange(false))
                  sync_.compare_soon();
              sync_.step();
              changes.tell(sync_.standing());
              std::unique_lock lock(mutex);
              (void)wake.wait_for(lock, stop, kPause, [] { return false; });
          }
          sync_.save();
      }) {}

}  // namespace sluice
