#include "daemon/rl_thread.h"

#include <sys/eventfd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/log.h"
#include "daemon/fleet_log.h"
#include "gate/source_rules.h"
#include "observe/audit.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;

// Between two looks at whether something is due.
constexpr auto kPause = 25ms;

std::string addresses(size_t number) {
    return std::to_string(number) + (number == 1 ? " address" : " addresses");
}

RlSync::OnWhitelist audited(const std::string& state_dir) {
    return [log = AuditLog(state_dir)](size_t before, size_t after) {
        const Status written = log.write(Operator{std::string(kRlList), {}},
                                         {"whitelist", std::string(kRlList), addresses(before),
                                          addresses(after), "as it is in Redis"});
        if (!written)
            log_error("the whitelist of rl: is not in the audit log", written.error());
    };
}

}  // namespace

RlThread::RlThread(const std::string& pin_dir, const std::string& state_dir,
                   const RedisDrill& drill)
    : news_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      sync_(pin_dir, state_dir, drill, audited(state_dir)),
      thread_([this](const std::stop_token& stop) {
          std::mutex mutex;
          std::condition_variable_any wake;
          FleetLog told("another limiter's keys");
          while (!stop.stop_requested()) {
              if (sync_.step())
                  (void)::eventfd_write(news_.get(), 1);
              told.tell(sync_.standing());
              std::unique_lock lock(mutex);
              (void)wake.wait_for(lock, stop, kPause, [] { return false; });
          }
      }) {}

void RlThread::take_news() {
    eventfd_t ignored{};
    (void)::eventfd_read(news_.get(), &ignored);
}

}  // namespace sluice
