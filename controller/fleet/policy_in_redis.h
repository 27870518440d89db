// Reads of the fleet's policy in Redis that take more than one reply.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/policy_message.h"
#include "redis/redis.h"

namespace sluice {

// Which versions hosts are to have, and what is changed for a time: all of one moment.
struct PolicyState {
    PolicyPointers pointers;
    std::vector<PolicyOverride> overrides;  // of which none is over
    uint64_t now_ms = 0;                    // Redis's clock, since 1970
};
Result<PolicyState> read_policy_state(Redis& redis, const PolicyKeys& keys);

struct StoredVersion {
    PolicyVersion about;
    std::string text;
};
Result<StoredVersion> read_policy_version(Redis& redis, const PolicyKeys& keys, uint64_t version);

}  // namespace sluice
