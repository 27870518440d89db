#include "cli/policy_desk.h"

#include <algorithm>
#include <charconv>

#include "cli/format.h"
#include "fleet/own_config.h"
#include "fleet/policy_budgets.h"
#include "fleet/policy_file.h"
#include "gate/policy_store.h"
#include "operate/policy_compiles.h"

namespace sluice::cli {

Result<PolicyDesk> PolicyDesk::open(const Session& session) {
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    auto fleet = FleetWriter::open(**gate);
    if (!fleet)
        return fleet.error();
    auto own = own_config(**gate, session.state_dir);
    if (!own)
        return own.error();
    PolicyDesk desk(*std::move(fleet), *std::move(own));
    if (const auto in_force = current_policy(**gate))
        if (const auto here = parse_fleet_source(in_force->source);
            here && here->fleet == desk.fleet_.fleet())
            desk.version_here_ = here->version;
    if (const auto kept = PolicyFile(session.state_dir).load(desk.fleet_.fleet()))
        desk.stamp_here_ms_ = kept->since_ms;
    auto state = read_policy_state(desk.fleet_.redis(), desk.keys_);
    if (!state) {
        Error told = state.error().with_context("Redis");
        if (told.code == ErrorCode::unreachable)
            told.code = ErrorCode::failed;
        return told;
    }
    desk.state_ = *std::move(state);
    return desk;
}

Result<StoredVersion> PolicyDesk::read(uint64_t version) {
    return read_policy_version(fleet_.redis(), keys_, version);
}

Status PolicyDesk::check(const StoredVersion& version, bool insists,
                         std::vector<std::string>& warnings) const {
    const auto config = with_fleet_policy(
        own_, {.fleet = fleet_.fleet(), .version = version.about.version, .text = version.text});
    const Status compiled = config ? compiles_here(config->policy) : config.error();
    if (compiled)
        return check_overrides(*config, insists, warnings);
    if (!insists)
        return failed(compiled.error().message,
                      "so it is refused here; where other hosts can have it: --force");
    warnings.push_back(compiled.error().message);
    return {};
}

Status PolicyDesk::check_overrides(const ConfigFile& config, bool insists,
                                   std::vector<std::string>& warnings) const {
    std::vector<PolicyOverride> overrides = state_.overrides;
    std::vector<std::string> left_out;
    const auto changed = with_fitting_overrides(config, overrides, left_out);
    if (!changed)
        return changed.error();
    if (left_out.empty())
        return {};
    if (!insists)
        return failed("it does not fit " + left_out.front(),
                      "end that first: sluicectl policy override SERVICE --clear --fleet; to leave "
                      "it out: --force");
    for (const std::string& why : left_out)
        warnings.push_back("hosts leave out " + why);
    return {};
}

void PolicyDesk::write_shared_budgets(std::vector<std::string>& warnings) {
    if (const Status done = write_owed_budgets(fleet_.redis(), fleet_.fleet()); !done)
        warnings.push_back(
            "the shared budgets are still those of before; a host writes them within "
            "seconds: " +
            done.error().message);
}

Status check_reason(const std::string& reason) {
    constexpr size_t kMost = 256;  // as policy.lua has it
    if (reason.size() > kMost)
        return make_error(ErrorCode::usage,
                          "--reason has " + std::to_string(reason.size()) + " bytes",
                          "at most " + std::to_string(kMost) + " are kept");
    if (std::ranges::any_of(reason, [](unsigned char c) { return c < ' ' || c == 0x7f; }))
        return make_error(ErrorCode::usage, "--reason has a line end or a control character",
                          "write it in one line");
    return {};
}

Result<uint64_t> parse_version(std::string_view what, const std::string& text) {
    const std::string_view digits = std::string_view(text).substr(text.starts_with('v') ? 1 : 0);
    uint64_t version = 0;
    const auto [end, failure] =
        std::from_chars(digits.data(), digits.data() + digits.size(), version);
    if (failure != std::errc{} || end != digits.data() + digits.size() || digits.empty())
        return make_error(ErrorCode::usage, std::string(what) + ": \"" + text + "\" is no version",
                          "use a number as in: sluicectl policy history");
    return version;
}

std::string pushed_by(const PolicyVersion& version) {
    return version.by + (version.from.empty() ? "" : " from " + version.from) + " at " +
           format_time(version.pushed_ms / 1000);
}

}  // namespace sluice::cli
