// sluicectl drill: rehearse what happens without Redis, while it is there.
#include "cli/command_line.h"
#include "cli/format.h"
#include "gate/policy_store.h"

namespace sluice::cli {

namespace {

constexpr std::string_view kDefaultTime = "30s";

struct Options {
    std::string lasts{kDefaultTime};
    std::string reason;
};

Result<std::chrono::nanoseconds> read_time(const std::string& text) {
    constexpr auto kMost = RedisDrill::kLongest;
    const auto time = parse_time(text);
    if (!time)
        return time.error().with_context("--for");
    if (*time > kMost)
        return make_error(ErrorCode::usage, "--for: " + text + " is too long for a drill",
                          "use at most " + format_span(kMost));
    return *time;
}

// Redis is there for this gate, or there is nothing to lose.
Status check_redis(const Session& session) {
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    const auto policy = current_policy(**gate);
    if (!policy)
        return policy.error();
    if (!policy->policy.redis)
        return failed("there is no [redis] in the policy, so there is nothing to lose",
                      "a drill is for hosts that share through Redis");
    return {};
}

Result<Answer> run(const Options& options, const Session& session) {
    const auto time = read_time(options.lasts);
    if (!time)
        return time.error();
    if (const Status there = check_redis(session); !there)
        return there.error();
    if (session.drill == nullptr)
        return make_error(ErrorCode::unreachable,
                          "sluiced does not answer, and nobody else talks to Redis here",
                          "without sluiced this host goes on without Redis already: "
                          "sluicectl budget");
    Answer answer;
    const std::chrono::nanoseconds before = session.drill->left();
    session.record({"drill", "redis-loss", before.count() != 0 ? "a drill" : "",
                    "for " + format_span(*time), options.reason},
                   answer.warnings);
    session.drill->begin(*time);
    session.made();
    answer.changed = true;
    answer.data = {{"drill", "redis-loss"}, {"left_s", seconds(session.drill->left())}};
    return answer;
}

void show(const Json& data, Screen& screen) {
    screen.line("This host does without Redis now; that ends by itself " +
                format_expiry(data["left_s"]) + ".");
    screen.line("Look at it: sluicectl budget");
}

}  // namespace

void add_drill(CommandLine& line) {
    CLI::App* app = line.add("drill", "Rehearse a failure, for a time");
    app->require_subcommand(1);
    CLI::App* loss =
        line.add("redis-loss", "This host asks Redis nothing, as if it were gone", app);
    auto options = std::make_shared<Options>();
    loss->add_option("--for", options->lasts, "Then it ends by itself")
        ->type_name("TIME")
        ->capture_default_str();
    loss->add_option("--reason", options->reason, "For the audit log");
    line.handle(
        loss, [options](const Session& session) { return run(*options, session); }, show);
}

}  // namespace sluice::cli
