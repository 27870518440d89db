#include "fleet/own_config.h"

#include <utility>

#include "fleet/fleet_policy.h"
#include "fleet/policy_file.h"
#include "gate/policy_store.h"

namespace sluice {

Result<ConfigFile> own_config(const Tables& tables, const std::string& state_dir) {
    auto in_force = current_policy(tables);
    if (!in_force)
        return in_force.error();
    if (!parse_fleet_source(in_force->source))
        return ConfigFile{std::move(in_force->policy), std::move(in_force->text),
                          std::move(in_force->source)};
    auto own = load_config_file(own_config_path(state_dir));
    return own ? own : own.error().with_context("this host's own configuration");
}

}  // namespace sluice
