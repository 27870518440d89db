// From a policy in domain words to what the packet path reads: pure functions, no BPF.
#pragma once

#include <sluice/service.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "policy/compile_limit.h"
#include "policy/policy.h"
#include "policy/service_table.h"

namespace sluice {

struct HostFacts {
    ClockFacts clock;
    uint32_t cpus = 1;  // among which the budget of events is divided
};

struct CompiledPolicy {
    sluice_policy shared{};                // `version` is left to whoever installs it
    std::vector<sluice_service> services;  // "other" first, then in the order of the file
    ServiceTable table;
};

// Refused whole where something does not fit; the error names service, rule and the nearest value
// that works.
Result<CompiledPolicy> compile(const Policy& policy, const ServiceIds& ids, const HostFacts& host);

// The names that need an id: "other", then the services in the order of the file.
std::vector<std::string> service_names(const Policy& policy);

// What the policy says to the switches of one service. What it leaves open is `enforce`: the most
// lenient of gate, service and rule wins, so that inherits.
struct ServiceModes {
    std::string service;
    sluice_mode mode = SLUICE_MODE_ENFORCE;
    std::array<sluice_mode, SLUICE_RULES> rules;  // by sluice_rule()
};
std::vector<ServiceModes> policy_modes(const Policy& policy);

// The same values under the names that the packet path uses.
constexpr sluice_mode to_abi(Mode mode) {
    return static_cast<sluice_mode>(mode);
}
inline uint32_t rule_index(Rule rule) {
    return sluice_rule(static_cast<uint32_t>(rule.scope), static_cast<uint32_t>(rule.dimension));
}
inline Rule rule_from_index(uint32_t index) {
    return {static_cast<Scope>(index / SLUICE_DIMENSIONS),
            static_cast<Dimension>(index % SLUICE_DIMENSIONS)};
}

}  // namespace sluice
