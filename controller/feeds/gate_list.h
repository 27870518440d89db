// A feed's list in the gate: counted, replaced, changed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "gate/source_rules.h"

namespace sluice {

class GateList {
  public:
    GateList(std::string pin_dir, std::string name, std::string reason)
        : pin_dir_(std::move(pin_dir)), name_(std::move(name)), reason_(std::move(reason)) {}

    // How many bans of it hold at present; ErrorCode::unreachable where there is no gate.
    [[nodiscard]] Result<size_t> count() const;
    // What changes with every change of the gate's rules, or with another gate; nothing where there
    // is none.
    [[nodiscard]] std::optional<uint64_t> version() const;
    // Another number for another gate, which may know less.
    [[nodiscard]] std::optional<uint64_t> gate() const { return gate_pin(pin_dir_); }

    // Makes the list exactly these; an allowed or protected prefix is left out, and counted. Waits
    // for other writers. Not begun where a stop is asked for meanwhile.
    Result<ImportOutcome> replace(std::span<const RuleEntry> entries, const std::stop_token& stop);
    // Takes `gone` off the list, then adds.
    Result<ImportOutcome> change(std::span<const Prefix> gone, std::span<const RuleEntry> added,
                                 const std::stop_token& stop);

  private:
    std::string pin_dir_;
    std::string name_;
    std::string reason_;
};

}  // namespace sluice
