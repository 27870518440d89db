// Modes of the gate, its services and rules: set for good or for a time, taken back by themselves.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "gate/tables.h"
#include "policy/rule_id.h"

namespace sluice {

struct WholeGate {
    friend bool operator==(const WholeGate&, const WholeGate&) = default;
};

struct OneService {
    std::string name;

    friend bool operator==(const OneService&, const OneService&) = default;
};

using SwitchTarget = std::variant<WholeGate, OneService, RuleId>;

// "gate", "login" or "login.per_source.data".
Result<SwitchTarget> parse_switch_target(std::string_view text);
std::string format_switch_target(const SwitchTarget& target);

struct SwitchTiming {
    std::optional<std::chrono::nanoseconds> lasts;    // then what was before comes back
    std::optional<std::chrono::nanoseconds> confirm;  // without a confirmation, even sooner
};

// A change that nobody confirmed for a day was forgotten, and an override of more than a year
// belongs into the policy.
inline constexpr std::chrono::hours kLongestConfirm{24};
inline constexpr std::chrono::hours kLongestOverride{366 * 24};

// Whether set_mode() would take this now. One that ends by itself, or waits for a confirmation, is
// refused over another one that does: there is room for one end alone, so that what comes back
// would not be what stood here. The same mode for another time is no such case.
Status check_mode_change(const Tables& tables, const SwitchTarget& target, Mode mode,
                         const SwitchTiming& timing);
// An operator's word beats the policy's until it is cleared; returns what was in force before.
// ErrorCode::not_found where the policy in force has no such service or rule.
// Whoever writes here and below holds the WriterLock.
Result<Mode> set_mode(const Tables& tables, const SwitchTarget& target, Mode mode,
                      const SwitchTiming& timing = {});
// Back to what the policy says; returns what was in force before.
Result<Mode> clear_mode(const Tables& tables, const SwitchTarget& target);

// The fleet's word: above the policy's, below an operator's here; but the gate off beats both.
struct FleetMode {
    Mode mode = Mode::observe;
    std::optional<std::chrono::nanoseconds> left;  // then the fleet says nothing; absent: stays
};
bool beats_operator(const SwitchTarget& target, Mode mode);
// Makes the switch follow it, or, without a word, what it is without the fleet. Cheap where it does
// already. Returns an operator's word that was beaten, for the caller to keep.
// ErrorCode::not_found where the policy in force has no such service or rule.
Result<std::optional<FleetMode>> follow_fleet(const Tables& tables, const SwitchTarget& target,
                                              const std::optional<FleetMode>& wanted);
// Whether follow_fleet() would change anything: to be known before the WriterLock is taken.
bool follows_fleet(const Tables& tables, const SwitchTarget& target,
                   const std::optional<FleetMode>& wanted);

// What its own switch says now.
Result<Mode> mode_of(const Tables& tables, const SwitchTarget& target);
// What it comes to: the most lenient of gate, service and rule.
Result<Mode> effective_mode(const Tables& tables, const SwitchTarget& target);

// What differs from the policy, or will change by itself.
struct SwitchEntry {
    std::string id;  // "gate", "login", "login.per_source.data", "policy", "attach:eth0"
    // A mode; "version 7" of a policy; "attached", or "passes everything" where that was not
    // confirmed in time.
    std::string now;
    std::string after;  // comes back at the deadline; empty where nothing does
    std::optional<std::chrono::nanoseconds> left;  // until then
    bool waits_for_confirmation = false;
    bool after_is_override = false;  // what comes back is an operator's word as well
    bool by_fleet = false;           // else an operator's, or the policy's own change
};

std::vector<SwitchEntry> list_switches(const Tables& tables);
// Of them, what an operator says over the policy's head; neither a policy nor an attachment that
// waits.
std::vector<SwitchEntry> list_overrides(const Tables& tables);

// Keeps a change that waits for its confirmation: an id of the list, or "all". Returns the ids.
// ErrorCode::not_found where nothing waits.
Result<std::vector<std::string>> confirm_switches(const Tables& tables, std::string_view id);

}  // namespace sluice
