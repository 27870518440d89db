// The policy in the gate's tables: two halves, of which one is in force.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gate/tables.h"
#include "policy/policy.h"

namespace sluice {

struct InstallOptions {
    // Taken back by the packet path itself unless it is confirmed within this time.
    std::optional<std::chrono::nanoseconds> confirm;
};

// Compiles the policy into the idle half and puts it in force with one store; returns its version.
// `text` must parse to `policy`: it is kept for `current_policy`. State, counters and operators'
// overrides stay. Refused whole, with nothing changed, where something does not fit or an earlier
// policy still waits for its confirmation. The caller holds the WriterLock.
Result<uint64_t> install_policy(const Tables& tables, const Policy& policy, std::string_view text,
                                std::string_view source, const InstallOptions& options = {});

struct InstalledPolicy {
    Policy policy;
    std::string text;
    std::string source;      // the file's name
    uint64_t version = 0;    // counts the policies of this gate
    uint64_t applied_s = 0;  // wall clock, seconds since 1970
};

// The policy in force; ErrorCode::not_found where none was ever installed.
Result<InstalledPolicy> current_policy(const Tables& tables);
// Its version; 0 where none was ever installed.
uint64_t current_policy_version(const Tables& tables);

uint32_t half_in_force(const Tables& tables);
// The policy's record and services in force.
const sluice_policy& policy_in_force(const Tables& tables);
const sluice_service& service_in_force(const Tables& tables, uint32_t id);

// After the packet path took a policy back by itself: brings what is kept beside it (the policy's
// values behind operators' overrides, removed services) in line. The caller holds the WriterLock.
Status settle_policy(const Tables& tables);
// After a writer was killed while it installed a policy: all that is kept beside the policy in
// force follows it again. The caller holds the WriterLock.
Status restate_policy(const Tables& tables);
// Makes a policy that waits for its confirmation stay, with the modes that it brought.
void confirm_policy(const Tables& tables);

// Whether the service has a limit of the index sluice_rule().
bool has_rule(const sluice_service& service, uint32_t rule);
// Switches of one service as if nobody ever said anything.
void reset_switches(const Tables& tables, uint32_t id);

}  // namespace sluice
