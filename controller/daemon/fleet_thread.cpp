#include "daemon/fleet_thread.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "daemon/fleet_log.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;

// How late a host notices that its share is nearly spent.
constexpr auto kWhileSharing = 20ms;
// How late it notices that the policy shares anything.
constexpr auto kElse = 500ms;

}  // namespace

FleetThread::FleetThread(const std::string& pin_dir)
    : sync_(pin_dir, drill_), thread_([this](const std::stop_token& stop) {
          std::mutex mutex;
          std::condition_variable_any wake;
          FleetLog told("shared budgets");
          while (!stop.stop_requested()) {
              sync_.step();
              const FleetStanding standing = sync_.standing();
              told.tell(standing);
              std::unique_lock lock(mutex);
              (void)wake.wait_for(lock, stop, standing.is_shared ? kWhileSharing : kElse,
                                  [] { return false; });
          }
      }) {}

}  // namespace sluice
