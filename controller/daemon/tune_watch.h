// The host's tuning, kept: put in force before the gate is attached, looked at ever after.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "policy/policy.h"

namespace sluice {

class Families;

// One interface that is tuned, by [tune] or by hand.
struct TunedInterface {
    std::string name;
    size_t drifted = 0;  // settings that are not as they were set
    std::string error;   // why that could not be looked at, or was not undone in time; else empty
    std::string mend;    // of the error
};

struct TuneStanding {
    std::vector<TunedInterface> interfaces;
    uint64_t set_again = 0;      // settings, since the start
    uint64_t not_set_again = 0;  // the same, that were refused
};

// As [tune] says, for all interfaces of the policy; nothing without it. What does not work is
// logged: a host whose queues are badly spread is better off with a gate than without.
void tune_interfaces(const Policy& policy, const std::string& state_dir);

// Looks every 15 s, in a thread of its own, because a driver may keep whoever asks it waiting. Also
// undoes what was not confirmed in time and whose own watcher is gone.
class TuneWatch {
  public:
    TuneWatch(std::string state_dir, bool sets_again);

    [[nodiscard]] TuneStanding standing() const;

  private:
    void run(const std::stop_token& stop);
    void look();

    std::string state_dir_;
    bool sets_again_;
    mutable std::mutex mutex_;
    std::condition_variable_any wake_;
    TuneStanding standing_;
    std::jthread thread_;  // last: it uses the others
};

void add_tune_metrics(const TuneStanding& standing, Families& out);

}  // namespace sluice
