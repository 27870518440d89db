#include "daemon/fleet_thread.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/log.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;

// How late a host notices that its share is nearly spent.
constexpr auto kWhileSharing = 20ms;
// How late it notices that the policy shares anything.
constexpr auto kElse = 500ms;

// What operators want to find in the log: not every lost call, but where it begins and ends.
class Changes {
  public:
    void tell(const FleetStanding& standing) {
        if (standing.error != error_ && !standing.error.empty())
            log(LogLevel::warning, "shared budgets: " + standing.error);
        else if (standing.error != error_)
            log(LogLevel::info, "shared budgets: Redis answers again");
        if (standing.duplicates > duplicates_)
            log(LogLevel::error,
                "another host had this one's identity, which is a new one now: was a gate copied?");
        error_ = standing.error;
        duplicates_ = standing.duplicates;
    }

  private:
    std::string error_;
    uint64_t duplicates_ = 0;
};

}  // namespace

FleetThread::FleetThread(const std::string& pin_dir)
    : sync_(pin_dir, drill_), thread_([this](const std::stop_token& stop) {
          std::mutex mutex;
          std::condition_variable_any wake;
          Changes changes;
          while (!stop.stop_requested()) {
              sync_.step();
              const FleetStanding standing = sync_.standing();
              changes.tell(standing);
              std::unique_lock lock(mutex);
              (void)wake.wait_for(lock, stop, standing.is_shared ? kWhileSharing : kElse,
                                  [] { return false; });
          }
      }) {}

}  // namespace sluice
