// sluicectl sync: this host and the fleet's Redis compared now, with a daemon or without one.
#include <algorithm>

#include "cli/command_line.h"
#include "cli/fleet_json.h"
#include "cli/fleet_writer.h"
#include "cli/format.h"
#include "fleet/feed_sync.h"

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
    if (!done)
        return done.error();
    answer.changed = true;
    answer.data = feed_json(sync.standing());
    answer.data["accepted"] = options.accept_shrink;
    return answer;
}

void show(const Json& data, Screen& screen) {
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
