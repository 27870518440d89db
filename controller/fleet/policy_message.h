// What Redis keeps of a fleet's policy, and the calls of the scripts that change it.
// controller/fleet/lua/policy.lua says how.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/policy_override.h"
#include "redis/command.h"
#include "redis/reply.h"

namespace sluice {

// All keys lie in one slot of a cluster.
struct PolicyKeys {
    explicit PolicyKeys(std::string_view fleet);
    [[nodiscard]] std::string text(uint64_t version) const;

    std::string base;
};

// Which version hosts are to have. Times are Redis's, in ms since 1970; 0: never, or no version.
struct PolicyPointers {
    uint64_t rev = 0;  // of the last change; 0: nobody ever pushed anything, or it is lost
    uint64_t last = 0;
    uint64_t current = 0;
    uint64_t since_ms = 0;
    std::string by, from;  // who made it current
    uint64_t canary = 0;
    std::string canary_hosts;  // as CanaryHosts reads it
    uint64_t canary_since_ms = 0;
    uint64_t stamp_ms = 0;  // of the last change: each has a later one than that before
    // With which the shared budgets of now are to be written to the lease shards; 0: they are there
    uint64_t unwritten_ms = 0;
    // When they are to be written once more, as a schedule goes on; 0: they are not
    uint64_t again_ms = 0;
};
redis::Command policy_pointers_command(const PolicyKeys& keys);
Result<PolicyPointers> parse_policy_pointers(const redis::Reply& reply);
// The same out of the answer to HGETALL.
Result<PolicyPointers> find_policy_pointers(const redis::Reply& all);

// One version, as it was pushed.
struct PolicyVersion {
    uint64_t version = 0;
    uint64_t pushed_ms = 0;
    std::string by, from;
    std::string digest;   // SHA-1 of its text, 40 hex digits
    uint64_t bytes = 0;   // of its text
    uint64_t before = 0;  // current when it became that; 0: none, or it never did
    std::string note;
};
redis::Command policy_version_command(const PolicyKeys& keys, uint64_t version);
Result<PolicyVersion> parse_policy_version(uint64_t version, const redis::Reply& reply);
// All that Redis still has, the latest first: the answer to HGETALL.
Result<std::vector<PolicyVersion>> parse_policy_history(const redis::Reply& reply);

// The text of a version, as it was pushed. An error where it is gone, or is another one.
Result<std::string> parse_policy_text(const PolicyVersion& version, const redis::Reply& reply);

// --- what operators write ------------------------------------------------------------------------

struct PolicyPush {
    std::string text;
    std::optional<uint64_t> base{};  // nothing may have been pushed after it
    uint64_t above = 0;              // the new version is above this one
    uint64_t after_ms = 0;           // and its stamp above this one
    std::string canaries{};          // empty: for all hosts at once
    std::string actor{}, from{}, note{};
};
redis::Command policy_push_command(const PolicyKeys& keys, const PolicyPush& push);
struct PolicyPushed {
    uint64_t version = 0;  // 0: nothing was pushed, as somebody else was faster
    uint64_t since_ms = 0;
    uint64_t before = 0;                    // the version that was current
    uint64_t last = 0;                      // pushed after `base`
    std::optional<PolicyVersion> theirs{};  // what is known of it
};
Result<PolicyPushed> parse_policy_pushed(const redis::Reply& reply);

struct PolicyPoint {
    uint64_t version = 0;  // 0: the current one, so that only the canary ends
    uint64_t rev = 0;      // by which that was decided
    std::string actor{}, from{};
};
redis::Command policy_point_command(const PolicyKeys& keys, const PolicyPoint& point);
struct PolicyPointed {
    enum class Outcome { done, moved, missing } outcome = Outcome::done;
    uint64_t since_ms = 0;
    uint64_t before = 0;
};
Result<PolicyPointed> parse_policy_pointed(const redis::Reply& reply);

// Other numbers for a service for so long; zero: it ends what there is.
redis::Command policy_override_command(const PolicyKeys& keys, const PolicyOverride& entry,
                                       std::chrono::milliseconds lasts);
struct PolicyOverridden {
    uint64_t until_ms = 0;  // by Redis's clock
    uint64_t stamp_ms = 0;
};
Result<PolicyOverridden> parse_policy_overridden(const redis::Reply& reply);
// All of them: the answer to HGETALL. What makes no sense is passed over.
Result<std::vector<PolicyOverride>> parse_policy_overrides(const redis::Reply& reply);

redis::Command policy_written_command(const PolicyKeys& keys, uint64_t stamp_ms,
                                      uint64_t again_ms = 0);

// Somebody has to write the shared budgets; `found_ms`: the stamp of those that a shard has, of a
// policy that Redis knows nothing of, or 0.
redis::Command policy_owe_command(const PolicyKeys& keys, uint64_t found_ms);
enum class PolicyOwed {
    owed,
    known,    // the shard has them from a change that came meanwhile
    missing,  // the fleet has no policy that could say which
};
Result<PolicyOwed> parse_policy_owed(const redis::Reply& reply);

}  // namespace sluice
