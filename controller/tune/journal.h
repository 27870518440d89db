// What was there before tuning, on disk before anything is changed: the way back from any crash.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "tune/setting.h"

namespace sluice {

struct JournalEntry {
    Setting setting;
    std::string before;  // the first of all applies, to the byte
    std::optional<std::string> wanted =
        {};  // what was set; nothing where it is kept only to come back

    // As both stood after the apply that was kept before this one.
    struct Kept {
        std::string value;
        std::optional<std::string> wanted = {};
    };
    std::optional<Kept> kept = {};
    // What the driver said yes to without doing it.
    std::optional<std::string> not_taken = {};
};

struct Journal {
    std::string interface;
    std::string boot;       // as Machine::boot(): what was set has gone with it
    uint64_t since_ms = 0;  // of CLOCK_BOOTTIME: the first of all applies
    std::vector<JournalEntry> entries = {};
    bool is_done = false;    // else it was cut off half-way
    bool is_second = false;  // one that was kept is below it: undoing this one leads back to that
    // Milliseconds of CLOCK_BOOTTIME: undone from then on, unless confirmed before.
    std::optional<uint64_t> deadline_ms = {};

    JournalEntry* find(const Setting& setting);
};

// Of one state folder.
class JournalFolder {
  public:
    explicit JournalFolder(const std::string& state_dir) : folder_(state_dir + "/tune") {}

    // Whoever changes settings or journals holds it. Busy where somebody else does for so long.
    [[nodiscard]] Result<UniqueFd> lock(std::chrono::milliseconds patience) const;

    // ErrorCode::not_found where nothing of this interface is tuned.
    [[nodiscard]] Result<Journal> read(const std::string& interface) const;
    // Whole or not at all, and on the disk.
    [[nodiscard]] Status write(const Journal& journal) const;
    [[nodiscard]] Status remove(const std::string& interface) const;
    // ErrorCode::not_permitted where this user may not see what is in it.
    [[nodiscard]] Status is_readable() const;
    // The interfaces that have one; none where it is not readable.
    [[nodiscard]] std::vector<std::string> interfaces() const;

    // For what belongs to it, such as the policy script for irqbalance.
    [[nodiscard]] const std::string& path() const { return folder_; }

  private:
    [[nodiscard]] std::string path_of(const std::string& interface) const;

    std::string folder_;
};

uint64_t boot_time_ms();

}  // namespace sluice
