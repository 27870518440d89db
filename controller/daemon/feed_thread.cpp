#include "daemon/feed_thread.h"

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

FeedThread::FeedThread(const std::string& pin_dir, const std::string& state_dir,
                       const RedisDrill& drill)
    : sync_(pin_dir, state_dir, drill), thread_([this](const std::stop_token& stop) {
          std::mutex mutex;
          std::condition_variable_any wake;
          FleetLog told("the fleet's feed");
          while (!stop.stop_requested()) {
              if (compare_soon_.exchange(false))
                  sync_.compare_soon();
              sync_.step();
              told.tell(sync_.standing());
              std::unique_lock lock(mutex);
              (void)wake.wait_for(lock, stop, kPause, [] { return false; });
          }
          sync_.save();
      }) {}

}  // namespace sluice
