#include "fleet/fleet_policy.h"

#include <charconv>
#include <utility>

#include "fleet/rl_config.h"
#include "operate/policy_compiles.h"
#include "operate/scheduled_config.h"
#include "policy/config_text.h"
#include "policy/fleet_part.h"
#include "policy/parse.h"

namespace sluice {

namespace {

constexpr std::string_view kFleet = "fleet ";
constexpr std::string_view kVersion = ", version ";
constexpr std::string_view kCanary = ", canary";
constexpr std::string_view kOverridden = ", changed for a time";

Result<ConfigFile> compiled_with(const ConfigFile& config,
                                 const std::vector<PolicyOverride>& overrides) {
    auto changed = with_overrides(config, overrides);
    if (!changed)
        return changed;
    if (const Status compiled = compiles_here(changed->policy); !compiled)
        return compiled.error();
    return changed;
}

}  // namespace

std::string format_fleet_source(const FleetSource& source) {
    return std::string(kFleet) + source.fleet + std::string(kVersion) +
           std::to_string(source.version) + std::string(source.is_canary ? kCanary : "") +
           std::string(source.is_overridden ? kOverridden : "");
}

bool is_overridden(std::string_view source) {
    return source.ends_with(kOverridden);
}

std::optional<FleetSource> parse_fleet_source(std::string_view source) {
    const size_t comma = source.find(kVersion);
    if (!source.starts_with(kFleet) || comma == std::string_view::npos)
        return std::nullopt;
    FleetSource parsed;
    parsed.is_overridden = is_overridden(source);
    if (parsed.is_overridden)
        source.remove_suffix(kOverridden.size());
    if (source.ends_with(kWithRlLimits))
        source.remove_suffix(kWithRlLimits.size());
    parsed.fleet = source.substr(kFleet.size(), comma - kFleet.size());
    const std::string_view rest = source.substr(comma + kVersion.size());
    const auto [end, failure] =
        std::from_chars(rest.data(), rest.data() + rest.size(), parsed.version);
    const std::string_view behind = rest.substr(static_cast<size_t>(end - rest.data()));
    parsed.is_canary = behind == kCanary;
    if (failure != std::errc{} || !(behind.empty() || parsed.is_canary))
        return std::nullopt;
    return parsed;
}

Result<ConfigFile> with_policy(const ConfigFile& host, ConfigTable policy, std::string source) {
    auto own = read_toml(host.text, host.source);
    if (!own)
        return own.error();
    const ConfigTable tree = with_fleet_part(*std::move(own), std::move(policy));
    auto read = read_policy(tree, source);
    if (!read)
        return read.error();
    ConfigFile config{*std::move(read), "", std::move(source)};
    config.text = "# " + config.source + ", with what is this host's own\n" + config_text(tree);
    if (const Status fits = check_config_size(config.text); !fits)
        return fits.error().with_context(config.source);
    return config;
}

Result<ConfigFile> with_fleet_policy(const ConfigFile& host, const FleetVersion& version) {
    std::string source = format_fleet_source({version.fleet, version.version, version.is_canary});
    auto shared = read_toml(version.text, source);
    if (!shared)
        return shared.error();
    return with_policy(host, fleet_part(*std::move(shared)).policy, std::move(source));
}

Result<ConfigFile> with_overrides(ConfigFile config, const std::vector<PolicyOverride>& overrides) {
    if (overrides.empty())
        return config;
    auto tree = read_toml(config.text, config.source);
    if (!tree)
        return tree.error();
    if (const Status applied = apply_overrides(*tree, overrides); !applied)
        return applied.error();
    std::string source = config.source + std::string(kOverridden);
    auto policy = read_policy(*tree, source);
    if (!policy)
        return policy.error();
    return ConfigFile{*std::move(policy), "# " + source + '\n' + config_text(*tree),
                      std::move(source)};
}

Result<ConfigFile> with_fitting_overrides(const ConfigFile& config,
                                          std::vector<PolicyOverride>& overrides,
                                          std::vector<std::string>& left_out) {
    auto all = compiled_with(config, overrides);
    // Where it is no good by itself no override is to blame.
    if (all || !compiles_here(config.policy))
        return all;
    ConfigFile fitting = config;
    std::vector<PolicyOverride> taken;
    for (PolicyOverride& entry : overrides) {
        taken.push_back(entry);
        auto with = compiled_with(config, taken);
        if (with) {
            fitting = *std::move(with);
            continue;
        }
        taken.pop_back();
        left_out.push_back(describe(entry) + ": " + with.error().message);
    }
    overrides = std::move(taken);
    return fitting;
}

Result<Policy> policy_of_any_host(const std::string& text, Instant at,
                                  std::vector<PolicyOverride> overrides) {
    // What a host needs to be in a fleet, and nothing of its own.
    const ConfigFile host{
        Policy{}, "[redis]\nurl = \"redis://127.0.0.1\"\n[fleet]\nmax_hosts = 1\n", "any host"};
    auto config = with_fleet_policy(host, {.fleet = "any", .version = 0, .text = text});
    if (config)
        config = with_schedules(*std::move(config), at);
    std::vector<std::string> left_out;  // hosts say that
    auto changed = config ? with_fitting_overrides(*config, overrides, left_out) : config;
    if (!changed)
        return changed.error();
    return std::move(changed->policy);
}

}  // namespace sluice
