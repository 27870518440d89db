// What the daemon needs beside the gate, looked at before the gate is touched: a daemon that ends
// for want of it and is started again every second would make a policy of each try.
#pragma once

#include "base/result.h"
#include "policy/policy.h"

namespace sluice {

// The group of [control], the address of [metrics] and the folder of [events]. Where a daemon runs
// already, the address may be in use: by that one.
Status check_surroundings(const Surroundings& around, bool is_running);

// [redis] says where and how, and its files can be read; whether anybody answers is not asked.
Status check_redis(const std::optional<RedisSettings>& settings);

}  // namespace sluice
