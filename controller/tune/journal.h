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
    std::string before;                 // to the byte
    std::optional<std::string> wanted;  // what was set; nothing where it is kept only to come back
};

struct Journal {
    std::string interface;
    std::string boot;  // as Machine::boot(): what was set has gone with it
    std::vector<JournalEntry> entries = {};
    bool is_done = false;  // else it was cut off half-way
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
    // The interfaces that have one.
    [[nodiscard]] std::vector<std::string> interfaces() const;

    // For what belongs to it, such as the policy script for irqbalance.
    [[nodiscard]] const std::string& path() const { return folder_; }

  private:
    [[nodiscard]] std::string path_of(const std::string& interface) const;

    std::string folder_;
};

uint64_t boot_time_ms();

}  // namespace sluice
