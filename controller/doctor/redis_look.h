// What Redis says of itself.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "policy/policy.h"
#include "redis/redis.h"

namespace sluice {

struct RedisLook {
    std::optional<Error> error;  // nobody answered
    redis::Health health;
    std::map<std::string, std::string> info;  // of INFO; empty where that is not allowed
};

// Connects, within the timeouts of [redis].
RedisLook look_at_redis(const RedisSettings& settings);

}  // namespace sluice
