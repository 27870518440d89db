#include "daemon/policy_thread.h"

#include <sys/eventfd.h>

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
    void tell(const PolicyStanding& standing) {
        if (standing.error != error_ && !standing.error.empty())
            log(LogLevel::warning, "the fleet's policy: " + standing.error);
        else if (standing.error != error_)
            log(LogLevel::info, "the fleet's policy: Redis answers again");
        if (standing.is_lost && !is_lost_)
            log(LogLevel::error,
                "Redis has lost the fleet's policy; version " + std::to_string(standing.applied) +
                    " stays in force here. To give it back: sluicectl policy push FILE");
        if (standing.refused != 0 && standing.refusal != refusal_)
            log(LogLevel::error,
                "version " + std::to_string(standing.refused) +
                    " of the fleet's policy is not in force here: " + standing.refusal);
        error_ = standing.error;
        is_lost_ = standing.is_lost;
        refusal_ = standing.refusal;
    }

  private:
    std::string error_, refusal_;
    bool is_lost_ = false;
};

}  // namespace

PolicyThread::PolicyThread(const std::string& state_dir, const RedisDrill& drill)
    : offers_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      sync_(state_dir, drill),
      thread_([this](const std::stop_token& stop) {
          std::mutex mutex;
          std::condition_variable_any wake;
          Changes changes;
          while (!stop.stop_requested()) {
              if (sync_.step())
                  (void)::eventfd_write(offers_.get(), 1);
              changes.tell(sync_.standing());
              std::unique_lock lock(mutex);
              (void)wake.wait_for(lock, stop, kPause, [] { return false; });
          }
      }) {}

std::optional<FleetVersion> PolicyThread::take_offer() {
    eventfd_t ignored{};
    (void)::eventfd_read(offers_.get(), &ignored);
    return sync_.take_offer();
}

}  // namespace sluice
