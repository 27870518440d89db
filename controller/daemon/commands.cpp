#include "daemon/commands.h"

#include <unistd.h>

#include <exception>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "cli/through_daemon.h"
#include "observe/audit.h"
#include "operate/gate_access.h"

namespace sluice {

namespace {

// The name is the kernel's word. The address is the client's own, which serves the log and the
// guard against locking himself out.
Operator operator_of(const ControlRequest& request, const ControlPeer& peer) {
    Operator who{request.actor.value_or(login_of(peer.uid)), {}};
    // Only root may claim to act for somebody else.
    if (peer.uid != 0)
        who.name = login_of(peer.uid);
    if (request.from)
        if (const auto address = IpAddress::parse(*request.from))
            who.from = *address;
    return who;
}

cli::Json or_null(const std::string& text) {
    return text.empty() ? cli::Json() : cli::Json(text);
}

void add_daemon(const CommandContext& context, cli::Answer& status) {
    const auto uptime = std::chrono::steady_clock::now() - context.started;
    const KeeperStanding& standing = context.keeper->standing();
    const Status audit = AuditLog(context.state_dir).check();
    status.data["daemon"] = {
        {"running", true},
        {"pid", ::getpid()},
        {"uptime_s", std::chrono::duration_cast<std::chrono::seconds>(uptime).count()},
        {"wanted", standing.wanted},
        {"attached", standing.attached},
        {"reattached", standing.reattached},
        {"config_error", or_null(standing.config_error)},
        {"state_error", or_null(standing.state_error)},
        {"override_error", or_null(standing.override_error)},
        {"state_lost", or_null(standing.state_lost)},
        {"audit_error", or_null(audit ? std::string() : audit.error().message)},
        {"events_error", or_null(context.events->error())}};
    if (!standing.state_lost.empty())
        status.warnings.push_back("not in force: " + standing.state_lost +
                                  "; said until the next start of sluiced");
}

void add_tuning(const TuneStanding& standing, cli::Answer& status) {
    cli::Json list = cli::Json::array();
    for (const TunedInterface& tuned : standing.interfaces) {
        list.push_back(
            {{"iface", tuned.name}, {"drifted", tuned.drifted}, {"error", or_null(tuned.error)}});
        if (!tuned.error.empty())
            status.warnings.push_back("tuning of " + tuned.name + ": " + tuned.error +
                                      (tuned.mend.empty() ? "" : "; " + tuned.mend));
        else if (tuned.drifted != 0)
            status.warnings.push_back("somebody else tunes " + tuned.name +
                                      ", so that it is not as it was set; sluicectl tune verify " +
                                      tuned.name + " shows what");
    }
    status.data["tuned"] = std::move(list);
}

cli::Json ban_feed_json(const BanFeedStanding& feed) {
    cli::Json age;
    if (feed.good_at)
        age =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - *feed.good_at).count();
    return {{"name", feed.name},
            {"type", feed_type_name(feed.type)},
            {"from", feed.from},
            {"age_s", age},
            {"entries", feed.entries ? cli::Json(*feed.entries) : cli::Json()},
            {"left_out", feed.left_out},
            {"left_out_first", or_null(feed.left_out_first)},
            {"spared", feed.spared},
            {"held", feed.held ? cli::Json(*feed.held) : cli::Json()},
            {"error", feed.error ? cli::Json(feed.error->message) : cli::Json()}};
}

void add_ban_feeds(const std::vector<BanFeedStanding>& feeds, cli::Answer& status) {
    cli::Json list = cli::Json::array();
    for (const BanFeedStanding& feed : feeds) {
        list.push_back(ban_feed_json(feed));
        if (feed.error)
            status.warnings.push_back("feed " + feed.name + ": " + feed.error->message +
                                      (feed.error->hint.empty() ? "" : "; " + feed.error->hint));
    }
    status.data["feeds"] = std::move(list);
}

void leave_alone(const CommandContext& context, const Status& saved, cli::Answer& detached) {
    detached.data["comes_back"] =
        context.keeper->leave_alone(detached.data.value("iface", std::string()));
    if (!saved)
        detached.warnings.push_back("the last changes are not on disk: " + saved.error().message);
}

Result<cli::Answer> run(const CommandContext& context, const ControlRequest& request,
                        const ControlPeer& peer) {
    cli::CommandLine line;
    cli::add_command(line, request.words.empty() ? std::string_view() : request.words.front());
    std::vector<const char*> arguments = {"sluicectl"};
    for (const std::string& word : request.words)
        arguments.push_back(word.c_str());
    const auto choice = line.parse(static_cast<int>(arguments.size()), arguments.data());
    if (!choice)
        return choice.error();
    if (choice->handler == nullptr) {
        cli::Answer help;
        help.data = {{"help", choice->help}};
        return help;
    }
    if (cli::is_for_oneself(choice->command))
        return make_error(ErrorCode::usage, '"' + choice->command + "\" is not done by the daemon",
                          "run sluicectl as root, which does it by itself");
    auto session = cli::Session::from(line.globals(), operator_of(request, peer));
    if (!session)
        return session.error();
    if (session->pin_dir != context.pin_dir && session->pin_dir != cli::GlobalOptions{}.pin_dir)
        return make_error(ErrorCode::unreachable,
                          "this daemon keeps the gate in " + context.pin_dir);
    // Waiting for the lock of the tables would hold up everybody else: who asked tries again.
    session->timeout = {};
    session->json = true;
    session->pin_dir = context.pin_dir;
    session->state_dir = context.state_dir;
    session->heavy = &context.events->heavy();
    session->counter = &context.keeper->counter();
    session->fleet = [&context] { return context.fleet->standing(); };
    session->kept_gate = [&context] { return context.keeper->kept_gate(); };
    session->fleet_view = [&context] { return context.fleet->view(); };
    session->drill = &context.fleet->drill();
    session->feed = [&context] { return context.feed->standing(); };
    session->risk = &context.risk->desk();
    session->fleet_policy = [&context] { return context.policy->standing(); };
    session->overrides = {
        .set =
            [&context](const PolicyOverride& entry, std::chrono::nanoseconds lasts) {
                return context.keeper->override_policy(entry, lasts);
            },
        .end = [&context](
                   const std::string& service) { return context.keeper->end_override(service); },
        .list = [&context] { return context.keeper->overrides(); },
        .unsaved = [&context] { return context.keeper->standing().override_error; }};
    session->rl = [&context] {
        return cli::RlReport{context.rl->standing(), context.keeper->rl_in_force(),
                             context.keeper->rl_left_out()};
    };
    session->compare_feed = [&context] { context.feed->compare_soon(); };
    session->prepare_attach = [&context](AttachOptions& attach) {
        context.keeper->prepare(attach);
    };
    // It goes into the audit log before it tries the lock; that must not happen with every try.
    if (choice->command == "detach" || choice->command == "attach")
        if (const auto lock = lock_gate(context.pin_dir, {}); !lock && lock.error().busy)
            return lock.error();
    // What goes with the tables is to be on disk.
    const Status saved = choice->command == "detach" ? context.keeper->save_now() : Status{};
    auto answer = choice->handler->run(*session);
    // Options may stand in front of the command, so its name is known only now.
    if (answer && choice->command == "status")
        add_daemon(context, *answer);
    if (answer && choice->command == "status")
        add_tuning(context.tune->standing(), *answer);
    if (answer && choice->command == "status")
        add_ban_feeds(context.ban_feeds->standing(), *answer);
    if (answer && choice->command == "detach")
        leave_alone(context, saved, *answer);
    // What it made is the daemon's from here on.
    if (answer && choice->command == "attach")
        context.keeper->tick();
    return answer;
}

ControlJson answer(const CommandContext& context, const ControlRequest& request,
                   const ControlPeer& peer) {
    if (request.words == std::vector<std::string>{"events", "--follow"})
        return {{"ok", true}, {"data", {{"follows", true}}}, {"follow", true}};
    const auto done = run(context, request, peer);
    if (!done)
        return error_answer(done.error());
    ControlJson json = cli::to_json(*done);
    if (done->quiet)
        json["quiet"] = true;
    if (done->changed)
        json["changed"] = true;
    return json;
}

}  // namespace

ControlHandler command_handler(const CommandContext& context) {
    return [context](const ControlRequest& request, const ControlPeer& peer) {
        try {
            return answer(context, request, peer);
        } catch (const std::exception& error) {
            return error_answer(failed(error.what()));
        }
    };
}

}  // namespace sluice
