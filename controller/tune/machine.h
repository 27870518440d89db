// A machine to look at and to tune: this one, or a captured tree that looks like it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tune/device.h"
#include "tune/setting.h"

namespace sluice {

class Machine {
  public:
    static Machine live() { return {"", live_ethtool()}; }
    // ErrorCode::not_found where `root` holds no sys/devices/system/cpu; also an error where it is
    // this machine, or something in it leads elsewhere.
    static Result<Machine> captured(const std::string& root);
    // The same, with cards that behave as `ethtool` does.
    static Result<Machine> captured(const std::string& root, std::unique_ptr<Ethtool> ethtool);

    [[nodiscard]] bool is_live() const { return root_.empty(); }
    [[nodiscard]] std::string path_of(const std::string& path) const { return root_ + path; }

    // The text of a file without its line end; nothing where it cannot be read, as single queues
    // refuse their xps_cpus.
    [[nodiscard]] std::optional<std::string> text(const std::string& path) const;
    // What a folder holds, in the order of numbers and names; nothing where there is none.
    [[nodiscard]] std::vector<std::string> names_in(const std::string& folder) const;
    [[nodiscard]] bool has(const std::string& path) const;

    [[nodiscard]] Ethtool& ethtool() const { return *ethtool_; }

    // To the byte. ErrorCode::not_found where it does not exist (any more).
    [[nodiscard]] Result<std::string> get(const Setting& setting) const;
    Status set(const Setting& setting, std::string_view value) const;

    // Which of its boots this is: what is set lasts for one. Empty of a captured tree.
    [[nodiscard]] std::string boot() const;

  private:
    Machine(std::string root, std::unique_ptr<Ethtool> ethtool)
        : root_(std::move(root)), ethtool_(std::move(ethtool)) {}
    [[nodiscard]] Result<std::string> file_of(const Setting& setting) const;

    std::string root_;  // without a slash at its end; empty: this machine
    std::unique_ptr<Ethtool> ethtool_;
};

// The lines of /proc/interrupts that have a number: number and name.
struct InterruptLine {
    unsigned number = 0;
    std::string name;
};
std::vector<InterruptLine> interrupts(const Machine& machine);

}  // namespace sluice
