// What Redis says of itself.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "policy/policy.h"
#include "redis/redis.h"

namespace sluice {

// What the user that Sluice logs in as may do, tried with commands that change nothing.
struct RedisRights {
    std::string user;                   // empty: it may not ask who it is
    std::vector<std::string> missing;   // as ACL SETUSER grants them: "+hset", "+cluster|slots"
    std::vector<std::string> closed;    // keys of the fleet that it may not use
    std::vector<std::string> too_many;  // which Sluice never needs: "config", "other keys"
};

struct RedisLook {
    std::optional<Error> error;  // nobody answered
    redis::Health health;
    std::optional<RedisRights> rights;        // nothing where the trial was cut off
    std::map<std::string, std::string> info;  // of INFO; empty where that is not allowed
};

// Connects, within the timeouts of [redis]. `fleet` is the name in its keys.
RedisLook look_at_redis(const RedisSettings& settings, const std::string& fleet);

// Nothing where Redis stops answering on the way. Nothing in it is changed.
std::optional<RedisRights> rights_in_redis(Redis& redis, const std::string& fleet, bool is_cluster);

}  // namespace sluice
