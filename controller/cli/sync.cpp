// sluicectl sync: this host and the fleet's Redis compared now, with a daemon or without one.
#include <algorithm>

#include "base/file.h"
#include "cli/command_line.h"
#include "cli/fleet_json.h"
#include "cli/fleet_writer.h"
#include "cli/format.h"
#include "fleet/feed_sync.h"
#include "fleet/fleet_policy.h"
#include "fleet/host_identity.h"
#include "fleet/own_config.h"
#include "fleet/policy_file.h"
#include "fleet/policy_sync.h"
#include "gate/policy_store.h"
#include "observe/schedule_audit.h"
#include "operate/apply_policy.h"
#include "operate/scheduled_config.h"

namespace sluice::cli {

namespace {

struct Options {
    bool once = false;
    bool accept_shrink = false;
};

Status accept(const Session& session, const FeedStanding& standing, Answer& answer) {
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    Tables& tables = **gate;
    auto fleet = FleetWriter::open(tables);
    if (!fleet)
        return fleet.error();
    const Status recorded =
        fleet->record(session,
                      {"sync --accept-shrink", standing.fleet,
                       format_count(standing.lost) + " lost here", "what Redis has is right", ""},
                      answer.warnings);
    if (!recorded)
        return recorded;
    const auto reply = fleet->write(feed_accept_command(fleet->keys(), standing.damaged));
    if (!reply)
        return reply.error();
    session.made();
    answer.changed = true;
    return {};
}

// By the daemon, which goes on with it by itself.
Result<Answer> with_daemon(const Options& options, const Session& session) {
    Answer answer;
    const FeedStanding standing = session.feed();
    if (!standing.is_followed)
        return failed("this host is in no fleet: its policy has no [redis]",
                      "add [redis] url = \"redis://…\" to its configuration");
    if (options.accept_shrink)
        if (const Status accepted = accept(session, standing, answer); !accepted)
            return accepted.error();
    session.compare_feed();
    answer.data = feed_json(standing);
    answer.data["accepted"] = options.accept_shrink;
    return answer;
}

// Who this host is, and where its fleet: the lock of the tables is not held while Redis is asked.
Result<FleetMember> member_here(const Session& session) {
    auto gate = session.open_to_write();
    if (!gate)
        return gate.error();
    if (host_id(gate->tables).empty())
        draw_host_id(gate->tables);
    const auto own = own_config(gate->tables, session.state_dir);
    if (!own)
        return own.error();
    return FleetMember{own->policy.redis, own->policy.fleet.name, host_id(gate->tables),
                       machine_name()};
}

Status apply(Tables& tables, const Policy& before, const ConfigFile& config, const Session& session,
             Answer& answer) {
    session.record({"sync", "policy", "version " + std::to_string(current_policy_version(tables)),
                    config.source, ""},
                   answer.warnings);
    for (const ScheduleTurn& turn : schedule_turns(before, config.policy))
        if (const Status written = AuditLog(session.state_dir).write(turn.who, turn.entry);
            !written)
            answer.warnings.push_back("not in the audit log: " + written.error().message);
    const auto version = apply_policy(tables, config, {}, session.who);
    if (!version)
        return version.error();
    session.made();
    return {};
}

Status put_in_force(const FleetVersion& offer, const Session& session, Answer& answer) {
    auto gate = session.open_to_write();
    if (!gate)
        return gate.error();
    Tables& tables = gate->tables;
    const auto own = own_config(tables, session.state_dir);
    if (!own)
        return own.error();
    // The fleet's policy takes its place in the gate.
    if (const Status kept = replace_file(own_config_path(session.state_dir), own->text); !kept)
        return kept;
    auto shared = with_fleet_policy(*own, offer);
    if (shared)
        shared = with_schedules(*std::move(shared), wall_now());
    if (!shared)
        return shared.error();
    std::vector<PolicyOverride> overrides = offer.overrides;
    std::vector<std::string> left_out;
    const auto config = with_fitting_overrides(*shared, overrides, left_out);
    if (!config)
        return config.error();
    for (const std::string& why : left_out)
        answer.warnings.push_back("left out, as it does not fit the policy: " + why);
    const auto current = current_policy(tables);
    if (current && current->text == config->text)
        return {};
    return apply(tables, current ? current->policy : Policy{}, *config, session, answer);
}

// What is due by now of the policy in force, whosever it is: also where this host is in no fleet,
// and where Redis does not answer. Whether it has any schedules.
Result<bool> keep_schedules(const Session& session, Answer& answer) {
    auto gate = session.open_to_write();
    if (!gate)
        return gate.error();
    const auto current = current_policy(gate->tables);
    if (!current && current.error().code == ErrorCode::not_found)
        return false;
    if (!current)
        return current.error();
    const auto config =
        with_schedules({current->policy, current->text, current->source}, wall_now());
    if (!config)
        return config.error();
    // What was overridden is over what is due, and the text does not say any more what it was.
    if (config->text != current->text && !is_overridden(current->source))
        if (const Status applied = apply(gate->tables, current->policy, *config, session, answer);
            !applied)
            return applied.error();
    return std::ranges::any_of(current->policy.services,
                               [](const Service& service) { return !service.schedules.empty(); });
}

// The fleet's policy of now, put in force: once, as nobody is there to follow it.
Status take_policy(const Session& session, Answer& answer) {
    auto member = member_here(session);
    if (!member)
        return member.error();
    const RedisDrill no_drill;
    PolicySync sync(session.state_dir, no_drill);
    sync.follow(*std::move(member));
    if (const Status asked = sync.round(); !asked)
        return asked;
    const auto offer = sync.take_offer();
    if (!offer) {
        if (sync.standing().is_older)
            answer.warnings.emplace_back(
                "Redis has an older state of the fleet's policy than this host, as of a backup; "
                "what is in force stays");
        return {};
    }
    if (const Status put = put_in_force(*offer, session, answer); !put)
        return put;
    sync.answered({});
    (void)sync.step();  // which keeps it on disk
    if (const std::string unsaved = sync.standing().unsaved; !unsaved.empty())
        answer.warnings.push_back("the fleet's policy would not outlive a reboot: " + unsaved);
    return {};
}

Result<Answer> run(const Options& options, const Session& session) {
    if (session.feed)
        return with_daemon(options, session);
    Answer answer;
    const RedisDrill no_drill;
    FeedSync sync(session.pin_dir, session.state_dir, no_drill);
    Status done = sync.round();
    if (done && options.accept_shrink)
        done = accept(session, sync.standing(), answer);
    if (done && options.accept_shrink)
        done = sync.round();
    if (done)
        done = take_policy(session, answer);
    const auto scheduled = keep_schedules(session, answer);
    if (!scheduled)
        return scheduled.error();
    const bool is_alone = !sync.standing().is_followed && *scheduled && !options.accept_shrink;
    if (!done && !is_alone)
        return done.error();
    answer.changed = true;
    answer.data = feed_json(sync.standing());
    answer.data["accepted"] = options.accept_shrink;
    return answer;
}

void show(const Json& data, Screen& screen) {
    if (data["name"] == "")
        return screen.line("This host is in no fleet. Its schedules are as they should be now.");
    screen.fields({{"fleet", data["name"].get<std::string>()},
                   {"bans, allows", format_count(data["records"].get<uint64_t>())},
                   {"switches", format_count(data["switches"].get<uint64_t>())},
                   {"lost in Redis", format_count(data["lost"].get<uint64_t>())},
                   {"refused here", format_count(data["refused"].get<uint64_t>())}});
    if (data["accepted"])
        screen.line("What Redis has is accepted; all hosts drop the rest within a second.");
    else if (data["lost"] != 0)
        screen.line(
            "What Redis lost still holds; if it is right that it has gone: "
            "sluicectl sync --accept-shrink");
}

}  // namespace

void add_sync(CommandLine& line) {
    auto options = std::make_shared<Options>();
    CLI::App* app = line.add("sync", "Compare this host with the fleet's Redis now");
    app->add_flag("--once", options->once, "One round; the only way without a daemon");
    app->add_flag("--accept-shrink", options->accept_shrink,
                  "What Redis has lost is to go from all hosts");
    line.handle(
        app, [options](const Session& session) { return run(*options, session); }, show);
}

}  // namespace sluice::cli
