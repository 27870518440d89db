#include "cli/policy_desk.h"

#include <charconv>

#include "cli/format.h"
#include "cli/policy_compiles.h"
#include "fleet/own_config.h"
#include "fleet/policy_budgets.h"
#include "gate/policy_store.h"

namespace sluice::cli {

Result<PolicyDesk> PolicyDesk::open(const Session& session) {
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    auto fleet = FleetWriter::open(**gate);
    if (!fleet)
        return fleet.error();
    const auto in_force = current_policy(**gate);
    if (!in_force)
        return in_force.error();
    auto own = own_config(**gate, session.state_dir);
    if (!own)
        return own.error();
    PolicyDesk desk(*std::move(fleet), *std::move(own), in_force->source);
    const auto reply = desk.fleet_.redis().run(policy_pointers_command(desk.keys_));
    auto pointers = reply ? parse_policy_pointers(*reply) : reply.error();
    if (!pointers) {
        Error told = pointers.error().with_context("Redis");
        if (told.code == ErrorCode::unreachable)
            told.code = ErrorCode::failed;
        return told;
    }
    desk.pointers_ = *std::move(pointers);
    if (const Status read = desk.read_overrides(); !read)
        return read.error();
    return desk;
}

Status PolicyDesk::read_overrides() {
    const auto reply = fleet_.redis().run({"HGETALL", keys_.base});
    auto overrides = reply ? parse_policy_overrides(*reply) : reply.error();
    if (!overrides)
        return overrides.error().with_context("Redis");
    // Those that are over by about now harm nobody: their end is written with them.
    overrides_ = *std::move(overrides);
    return {};
}

Result<StoredVersion> PolicyDesk::read(uint64_t version) {
    const auto replies = fleet_.redis().run(std::vector<redis::Command>{
        policy_version_command(keys_, version), {"GET", keys_.text(version)}});
    if (!replies)
        return replies.error().with_context("Redis");
    auto about = parse_policy_version(version, (*replies)[0]);
    if (!about)
        return about.error();
    auto text = parse_policy_text(*about, (*replies)[1]);
    if (!text)
        return text.error();
    return StoredVersion{*std::move(about), *std::move(text)};
}

Result<ConfigFile> PolicyDesk::as_here(const StoredVersion& version) const {
    auto config = with_fleet_policy(
        own_, {.fleet = fleet_.fleet(), .version = version.about.version, .text = version.text});
    if (!config)
        return config;
    if (const Status compiled = compiles_here(config->policy); !compiled)
        return compiled.error().with_context(config->source);
    return config;
}

void PolicyDesk::write_shared_budgets(const std::string& text, uint64_t since_ms,
                                      std::vector<std::string>& warnings) {
    Status done = write_budgets_in_time(fleet_.redis(), fleet_.fleet(), text, overrides_,
                                        budgets_version(since_ms));
    if (done) {
        const auto noted = fleet_.redis().run(policy_written_command(keys_, since_ms));
        done = noted ? noted->check() : noted.error();
    }
    if (!done)
        warnings.push_back(
            "the shared budgets are still those of before; a host writes them within "
            "seconds: " +
            done.error().message);
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
