#include "daemon/risk_thread.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "daemon/fleet_log.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;

// Between two looks at whether something is due.
constexpr auto kPause = 25ms;
// Between two looks at what is worth a line in the log.
constexpr unsigned kTellEach = 20;

}  // namespace

RiskThread::RiskThread(const std::string& pin_dir, const std::string& state_dir,
                       const RedisDrill& drill)
    : desk_(pin_dir, state_dir, drill), thread_([this](const std::stop_token& stop) {
          std::mutex mutex;
          std::condition_variable_any wake;
          FleetLog told("risk");
          for (unsigned step = 0; !stop.stop_requested(); ++step) {
              desk_.step();
              if (step % kTellEach == 0)
                  told.tell(desk_.standing());
              std::unique_lock lock(mutex);
              (void)wake.wait_for(lock, stop, kPause, [] { return false; });
          }
      }) {}

}  // namespace sluice
