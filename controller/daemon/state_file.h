// What outlives a reboot: bans, allows and overrides on disk.
//
// A text file of tab-separated lines, so that people can read it, closed by a line that proves it
// whole. It is written beside the old one, fsynced, and renamed over it. Deadlines are of monotonic
// time, with the boot that it belongs to; after another boot the time that passed by the wall clock
// is taken off what was left, and never more is added.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gate/source_rules.h"
#include "gate/switches.h"
#include "gate/tables.h"

namespace sluice {

struct SavedSwitch {
    std::string id;
    Mode mode = Mode::observe;
    std::optional<std::chrono::nanoseconds> left;  // absent: for good
};

struct SavedState {
    KeptRules kept;  // with the time that is left
    std::vector<SavedSwitch> switches;
};

class StateFile {
  public:
    explicit StateFile(const std::string& state_dir) : path_(state_dir + "/state") {}

    // Of lists that are kept up by somebody else (the policy's, the protected set) nothing is kept.
    [[nodiscard]] Status save(const Tables& tables) const;

    // Nothing where there is no file. A file that is torn, foreign or unreadable is set aside as
    // state.bad-TIME; the error says so, and what is wrong with it.
    [[nodiscard]] Result<SavedState> load() const;

    [[nodiscard]] bool exists() const;

    // Out of the way of the next save(), which would write over it; the error says where it is now.
    [[nodiscard]] Error set_aside(Error why) const;

  private:
    std::string path_;
};

// Puts it into a gate; what an allow or a protection beats by now is listed as overruled, and an
// operator's switch that stands there stays. How many rules are listed.
Result<size_t> restore_state(Tables& tables, const SavedState& state);

}  // namespace sluice
