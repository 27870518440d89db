#include "operate/policy_compiles.h"

#include <ctime>

#include "policy/compile.h"

namespace sluice {

namespace {

ClockFacts clock_of_this_host() {
    timespec tick{};
    (void)::clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    const auto tick_ns = static_cast<uint32_t>(tick.tv_sec * 1'000'000'000 + tick.tv_nsec);
    return {tick_ns, 2 * tick_ns};
}

}  // namespace

Status compiles_here(const Policy& policy) {
    ServiceIds ids;
    for (const std::string& name : service_names(policy))
        ids.emplace(name, static_cast<uint32_t>(ids.size()));
    const auto compiled = compile(policy, ids, {clock_of_this_host(), 1});
    return compiled ? Status{} : compiled.error();
}

}  // namespace sluice
