// sluicectl events: what the gate drops, as it drops it.
#include <csignal>
#include <cstdio>

#include "cli/command_line.h"
#include "cli/format.h"
#include "cli/prefix_argument.h"
#include "cli/through_daemon.h"
#include "control/client.h"

namespace sluice::cli {

namespace {

struct Options {
    bool follow = false;
    std::optional<std::string> source;
};

bool is_wanted(const Json& event, const std::optional<Prefix>& source) {
    if (!source)
        return true;
    const auto from = event.find("src");
    if (from == event.end() || !from->is_string())
        return false;
    const auto address = IpAddress::parse(from->get<std::string>());
    return address && source->contains(*address);
}

std::string text_of(const Json& event) {
    const auto text = [&](const char* key) {
        const auto found = event.find(key);
        return found == event.end() || found->is_null() ? std::string()
               : found->is_string()                     ? found->get<std::string>()
                                                        : found->dump();
    };
    if (event.contains("not_written"))
        return text("time").substr(11, 12) + "  … " + text("not_written") +
               " more packets: " + text("service") + ' ' + text("verdict");
    if (event.contains("before"))
        return text("time").substr(11, 12) + "  … " + text("before") +
               " packets before sluiced began to read: " + text("service") + ' ' + text("verdict");
    if (event.contains("lost"))
        return "… " + text("lost") + " lines lost: this terminal is too slow";
    // Who is dropped for his address alone is dropped before anybody looks for ports.
    const std::string protocol =
        text("proto") + (text("dport") == "0" ? std::string() : '/' + text("dport"));
    return text("time").substr(11, 12) + "  " + text("src") + " → " + text("dst") + ' ' + protocol +
           "  " + text("verdict") + "  " + (text("rule").empty() ? text("service") : text("rule")) +
           "  ×" + text("sampled_of");
}

// Goes on until somebody ends it: lines are printed as they come, not handed back.
Result<Answer> run(const Options& options, const Session& session) {
    if (!options.follow)
        return make_error(ErrorCode::usage, "only --follow is there so far",
                          "past events are in the file of [events]");
    std::optional<Prefix> source;
    if (options.source) {
        Answer ignored;
        const auto prefix = parse_prefix(*options.source, ignored.warnings);
        if (!prefix)
            return prefix.error().with_context("--source");
        source = prefix->prefix;
    }
    // Hours may pass between two events.
    constexpr std::chrono::hours kPatience(24 * 365);
    auto client = ControlClient::connect(session.socket, kPatience);
    if (!client)
        return unreached(session, "events are read by the daemon: start sluiced");
    ControlRequest request;
    request.words = {"events", "--follow"};
    auto line = client->ask(request);
    if (line && !line->value("ok", false))
        return error_of(*line);
    for (line = client->next(); line; line = client->next()) {
        if (!is_wanted(*line, source))
            continue;
        const std::string text = session.json
                                     ? line->dump(-1, ' ', false, Json::error_handler_t::replace)
                                     : text_of(*line);
        if (std::puts(text.c_str()) < 0 || std::fflush(stdout) != 0)
            break;
    }
    if (!line)
        return line.error();
    return Answer{{}, {}, true};
}

void show(const Json&, Screen&) {}

}  // namespace

void add_events(CommandLine& line) {
    auto options = std::make_shared<Options>();
    CLI::App* app = line.add("events", "What the gate drops, as it drops it");
    app->add_flag("--follow", options->follow, "Until Ctrl-C");
    app->add_option("--source", options->source, "Only from these addresses")->type_name("PREFIX");
    line.handle(
        app, [options](const Session& session) { return run(*options, session); }, show);
}

}  // namespace sluice::cli
