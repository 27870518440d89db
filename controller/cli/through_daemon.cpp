#include "cli/through_daemon.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <thread>
#include <vector>

#include "control/client.h"

namespace sluice::cli {

namespace {

// To tune and to examine takes seconds of measuring, and the daemon waits for nobody.
constexpr std::array<std::string_view, 14> kForOneself = {
    "bans import", "policy check", "policy apply", "policy push", "init",
    "events",      "completion",   "version",      "tune plan",   "tune apply",
    "tune verify", "tune revert",  "tune capture", "doctor"};

// Lists may be long, and the daemon has others to serve: who can read the tables does.
constexpr std::array<std::string_view, 2> kLists = {"bans", "allows"};

// Those that ask the daemon by themselves, as often as they need.
constexpr std::array<std::string_view, 2> kAskThemselves = {"services", "top"};

// These may take a minute, or wait for Redis. All else is answered within milliseconds by a daemon
// that is alive, so that whoever needs the gate off is not held up by one that hangs.
constexpr std::array<std::string_view, 12> kSlow = {
    "attach",          "detach",         "bans flush",     "unban",
    "confirm",         "sync",           "policy promote", "policy rollback",
    "policy override", "policy history", "policy show",    "drill"};
constexpr std::chrono::seconds kWork(60);
// Between two tries, while another program writes.
constexpr std::chrono::milliseconds kPause(50);

// The daemon does not wait for others who write: this end does, for as long as --timeout says.
Result<ControlJson> ask_until_free(ControlClient& client, const ControlRequest& request,
                                   std::chrono::milliseconds timeout) {
    using std::chrono::steady_clock;
    const auto deadline = steady_clock::now() + timeout;
    for (;;) {
        auto answer = client.ask(request);
        if (!answer || answer->value("ok", false) || !error_of(*answer).busy ||
            steady_clock::now() + kPause > deadline)
            return answer;
        std::this_thread::sleep_for(kPause);
    }
}

Answer from_json(const ControlJson& json) {
    Answer answer;
    answer.data = json.value("data", Json::object());
    answer.quiet = json.value("quiet", false);
    answer.changed = json.value("changed", false);
    if (const auto warnings = answer.data.find("warnings"); warnings != answer.data.end()) {
        answer.warnings = warnings->get<std::vector<std::string>>();
        answer.data.erase("warnings");
    }
    return answer;
}

}  // namespace

bool is_for_oneself(const std::string& command) {
    return std::find(kForOneself.begin(), kForOneself.end(), command) != kForOneself.end();
}

Error unreached(const Session& session, std::string hint) {
    const auto client = ControlClient::connect(session.socket, session.timeout);
    if (client || client.error().code != ErrorCode::not_permitted)
        return make_error(ErrorCode::unreachable, "no daemon answers at " + session.socket,
                          std::move(hint));
    Error error = client.error();
    error.hint = "run it as root, or join the group that [control] names";
    return error;
}

std::optional<Result<Answer>> through_daemon(const std::string& command, int count,
                                             const char* const* arguments, const Session& session) {
    const bool asks_itself =
        std::find(kAskThemselves.begin(), kAskThemselves.end(), command) != kAskThemselves.end();
    // Whoever names a socket, and no gate, means the gate of that daemon.
    const GlobalOptions usual;
    const bool knows_gate = session.socket == usual.socket || session.pin_dir != usual.pin_dir;
    const bool reads_itself =
        knows_gate && ::geteuid() == 0 && std::ranges::find(kLists, command) != kLists.end();
    // A captured machine is a folder of whoever asks.
    const std::vector<std::string_view> words(arguments + 1, arguments + count);
    const bool has_root = std::ranges::any_of(words, [](std::string_view word) {
        return word == "--root" || word.starts_with("--root=");
    });
    if (is_for_oneself(command) || asks_itself || reads_itself || has_root)
        return std::nullopt;
    return ask_daemon({arguments + 1, arguments + count}, session);
}

std::optional<Result<Answer>> ask_daemon(const std::vector<std::string>& words,
                                         const Session& session) {
    std::string command;
    for (const std::string& word : words)
        command += (command.empty() ? "" : " ") + word;
    const bool is_slow = std::ranges::any_of(
        kSlow, [&](std::string_view slow) { return command.find(slow) != std::string::npos; });
    auto client =
        ControlClient::connect(session.socket, is_slow ? session.timeout + kWork : session.timeout);
    if (!client)
        return std::nullopt;
    ControlRequest request;
    request.id = 1;
    request.words = words;
    request.actor = session.who.name;
    if (session.who.from)
        request.from = session.who.from->to_string();
    const auto answer = ask_until_free(*client, request, session.timeout);
    // What it has not begun by now it will not do: it is seen to that nobody waits any more.
    if (!answer && answer.error().code == ErrorCode::unreachable && !is_slow) {
        session.progress("sluiced does not answer: straight on the gate's tables");
        return std::nullopt;
    }
    if (!answer)
        return Result<Answer>(answer.error());
    if (answer->value("ok", false))
        return Result<Answer>(from_json(*answer));
    Error error = error_of(*answer);
    // It keeps another gate: --pin-dir was meant.
    if (error.code == ErrorCode::unreachable)
        return std::nullopt;
    return Result<Answer>(std::move(error));
}

}  // namespace sluice::cli
