#include "daemon/fleet_thread.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>

#include "daemon/fleet_log.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;

// How late a host notices that its share is nearly spent. Nothing that comes in step with it is to
// look as if it were there always, or never.
constexpr auto kWhileSharing = 20ms, kOutOfStep = 8ms;
// How late it notices that the policy shares anything.
constexpr auto kElse = 500ms;

}  // namespace

FleetThread::FleetThread(const std::string& pin_dir)
    : sync_(pin_dir, drill_), thread_([this](const std::stop_token& stop) {
          std::mutex mutex;
          std::condition_variable_any wake;
          FleetLog told("shared budgets"), told_of_sources("heavy sources of the fleet");
          std::minstd_rand random{std::random_device()()};
          std::uniform_int_distribution<int64_t> odd(-kOutOfStep / 1us, kOutOfStep / 1us);
          while (!stop.stop_requested()) {
              sync_.step();
              const FleetStanding standing = sync_.standing();
              told.tell(standing);
              told_of_sources.tell(standing.sources);
              std::unique_lock lock(mutex);
              const bool is_busy = standing.is_shared || standing.sources.watched != 0;
              const auto pause =
                  is_busy ? kWhileSharing + std::chrono::microseconds(odd(random)) : kElse;
              (void)wake.wait_for(lock, stop, pause, [] { return false; });
          }
      }) {}

}  // namespace sluice
