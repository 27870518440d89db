#include "cli/policy_of_fleet.h"

#include "cli/policy_history.h"
#include "cli/policy_point.h"
#include "cli/policy_push.h"
#include "cli/rl_rollback.h"

namespace sluice::cli {

namespace {

void add_push(CommandLine& line, CLI::App* policy) {
    auto options = std::make_shared<PolicyPushOptions>();
    CLI::App* app = line.add("push", "Make a file the next version of the fleet's policy", policy);
    app->add_option("FILE", options->path, "Such as /etc/sluice/policy.toml")->required();
    app->add_option("--base", options->base, "Only if nobody pushed after this version")
        ->type_name("V");
    app->add_option("--canary", options->canary,
                    "For some hosts first: names or ids with commas, or a part such as 10%")
        ->type_name("HOSTS");
    app->add_option("--reason", options->reason, "Kept with the version")->type_name("TEXT");
    app->add_flag("--force", options->force,
                  "Budgets may be above a service's capacity, and overrides need not fit");
    app->add_flag("--dry-run", options->dry_run,
                  "Say what it would change and where, and change nothing");
    line.handle(
        app, [options](const Session& session) { return push_policy(*options, session); },
        show_push);
}

constexpr const char* kVersion = "A version of the fleet's policy";

void add_promote(CommandLine& line, CLI::App* policy) {
    auto options = std::make_shared<PromoteOptions>();
    CLI::App* app =
        line.add("promote", "Give the canary, or another version, to all hosts", policy);
    app->add_option("V", options->version, kVersion);
    app->add_flag("--force", options->force,
                  "Also a canary that seems to cut off real users, or that hosts refuse");
    line.handle(
        app, [options](const Session& session) { return promote_policy(*options, session); },
        show_point);
}

void add_rollback(CommandLine& line, CLI::App* policy) {
    auto options = std::make_shared<RollbackOptions>();
    CLI::App* app =
        line.add("rollback", "Take the canary back, or go to the version before", policy);
    app->add_option("V", options->version, kVersion);
    app->add_flag("--force", options->force,
                  "Also one that this host can't have, or that overrides don't fit");
    auto rl = std::make_shared<std::vector<std::string>>();
    app->add_option("--rl", *rl, "Instead: write a dated policy of a gateway's route back")
        ->expected(2)
        ->type_name("ROUTE STAMP");
    line.handle(
        app,
        [options, rl](const Session& session) {
            if (rl->empty())
                return rollback_policy(*options, session);
            if (options->version || options->force)
                return Result<Answer>(
                    make_error(ErrorCode::usage, "--rl takes neither a version nor --force"));
            return rollback_rl(rl->front(), rl->back(), session);
        },
        [](const Json& data, Screen& screen) {
            return data.contains("route") ? show_rollback_rl(data, screen)
                                          : show_point(data, screen);
        });
}

}  // namespace

void add_policy_of_fleet(CommandLine& line, CLI::App* policy) {
    add_push(line, policy);
    line.handle(line.add("history", "Versions of the fleet's policy, and who has which", policy),
                policy_history, show_policy_history);
    add_promote(line, policy);
    add_rollback(line, policy);
}

}  // namespace sluice::cli
