#include "daemon/policy_thread.h"

#include <sys/eventfd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "daemon/fleet_log.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;

// Between two looks at whether something is due.
constexpr auto kPause = 25ms;

}  // namespace

PolicyThread::PolicyThread(const std::string& state_dir, const RedisDrill& drill)
    : offers_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      sync_(state_dir, drill),
      thread_([this](const std::stop_token& stop) {
          std::mutex mutex;
          std::condition_variable_any wake;
          FleetLog told("the fleet's policy");
          while (!stop.stop_requested()) {
              if (sync_.step())
                  (void)::eventfd_write(offers_.get(), 1);
              told.tell(sync_.standing());
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
