// The last good version of the fleet's policy on disk: what a host begins with where Redis does not
// answer.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "fleet/fleet_policy.h"

namespace sluice {

// Beside it: the host's own configuration, as it was taken last.
inline std::string own_config_path(const std::string& state_dir) {
    return state_dir + "/policy.toml";
}

class PolicyFile {
  public:
    explicit PolicyFile(const std::string& state_dir) : path_(state_dir + "/fleet-policy") {}

    // Of the fleet of this name; nothing where there is none, or where it is torn: Redis has it
    // too.
    [[nodiscard]] std::optional<FleetVersion> load(const std::string& fleet) const;
    // Whole or not at all.
    [[nodiscard]] Status save(const FleetVersion& version) const;

  private:
    std::string path_;
};

}  // namespace sluice
