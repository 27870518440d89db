#include "cli/policy_push.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cli/format.h"
#include "cli/policy_desk.h"
#include "fleet/canary_hosts.h"
#include "fleet/policy_budgets.h"
#include "operate/policy_compiles.h"
#include "policy/capacity.h"
#include "policy/compile.h"
#include "policy/config_text.h"
#include "policy/find_service.h"
#include "policy/fleet_part.h"
#include "policy/match.h"
#include "policy/parse.h"
#include "policy/rule_id.h"
#include "policy/schedule.h"
#include "policy/service_change.h"
#include "policy/written_rate.h"

namespace sluice::cli {

namespace {

// --- the file ------------------------------------------------------------------------------------

// What of a file goes to the fleet, and what this host would make of it.
struct ToPush {
    std::string text;
    ConfigFile config;
    std::vector<std::string> warnings;
};

Result<ToPush> read_file_to_push(const std::string& path, const ConfigFile& own) {
    auto config = load_config(path);
    if (!config)
        return config.error();
    FleetPart part = fleet_part(*std::move(config));
    auto here = with_policy(own, part.policy, path);
    if (!here)
        return here.error();
    if (const Status compiled = compiles_here(here->policy); !compiled)
        return failed(path + ": " + compiled.error().message, compiled.error().hint);
    const auto more = drop_ins(path);
    if (!more)
        return more.error();
    ToPush push{"", *std::move(here), std::move(part.left_out)};
    // Comments are worth keeping, where the file is all there is and all of it goes.
    if (push.warnings.empty() && more->empty()) {
        auto text = read_config_text(path);
        if (!text)
            return text.error();
        push.text = *std::move(text);
    } else {
        push.text = config_text(part.policy);
    }
    push.warnings.insert(push.warnings.end(), push.config.policy.warnings.begin(),
                         push.config.policy.warnings.end());
    return push;
}

Status check_capacity(const Policy& policy, bool force) {
    const auto above = above_capacity(policy);
    if (above.empty() || force)
        return {};
    return failed(above.front() +
                      (above.size() > 1 ? ", and " + plural(above.size() - 1, "more budget") : ""),
                  "lower it, or insist: --force");
}

// --- what it changes -----------------------------------------------------------------------------

std::string matches_of(const Service* service) {
    std::string text;
    if (service != nullptr)
        for (const Match& match : service->matches)
            text += (text.empty() ? "" : ", ") + format_match(match);
    return text;
}

std::string mode_of_service(const Service* service) {
    return service != nullptr && service->mode ? std::string(mode_name(*service->mode)) : "";
}

std::string text_of_schedule(const Service* service, const std::string& name) {
    if (service == nullptr)
        return {};
    const auto found = std::ranges::find(service->schedules, name, &Schedule::name);
    return found == service->schedules.end() ? ""
                                             : format_changes(*found) + ", " + format_times(*found);
}

// By rule, in the words of the configuration.
Json changes_between(const Policy& before, const Policy& after) {
    Json changes = Json::array();
    const auto add = [&](const std::string& what, const std::string& was, const std::string& is) {
        if (was != is)
            changes.push_back({{"what", what},
                               {"before", was.empty() ? Json() : Json(was)},
                               {"after", is.empty() ? Json() : Json(is)}});
    };
    add("mode", std::string(mode_name(before.mode)), std::string(mode_name(after.mode)));
    std::set<std::string> names;
    for (const Policy* policy : {&before, &after})
        for (const Service& service : policy->services)
            names.insert(service.name);
    for (const std::string& name : names) {
        const Service *was = find_service(before, name), *is = find_service(after, name);
        add(name + ".match", matches_of(was), matches_of(is));
        add(name + ".mode", mode_of_service(was), mode_of_service(is));
        for (uint32_t index = 0; index < SLUICE_RULES; ++index) {
            const Rule rule = rule_from_index(index);
            add(format_rule_id({name, rule}), written_rate(before, name, rule),
                written_rate(after, name, rule));
        }
        std::set<std::string> schedules;
        for (const Service* service : {was, is})
            if (service != nullptr)
                for (const Schedule& schedule : service->schedules)
                    schedules.insert(schedule.name);
        for (const std::string& schedule : schedules)
            add(name + ".schedule." + schedule, text_of_schedule(was, schedule),
                text_of_schedule(is, schedule));
    }
    add("classes", std::to_string(before.classes.size()), std::to_string(after.classes.size()));
    add("allows", std::to_string(before.sources.allow.size()),
        std::to_string(after.sources.allow.size()));
    return changes;
}

// The version that the fleet has, as this host reads it; this host's own policy where it has none.
Result<Policy> policy_before(PolicyDesk& desk) {
    if (desk.pointers().current == 0)
        return desk.own().policy;
    const auto stored = desk.read(desk.pointers().current);
    if (!stored)
        return stored.error();
    auto config = with_fleet_policy(
        desk.own(),
        {.fleet = desk.fleet().fleet(), .version = desk.pointers().current, .text = stored->text});
    if (!config)
        return config.error();
    return std::move(config->policy);
}

// Shared budgets that are other ones, a second; null: not shared.
Json budgets_between(const Policy& before, const Policy& after) {
    std::map<std::string, std::pair<Json, Json>> rates;
    for (const FleetBudget& budget : fleet_budgets(before))
        rates[budget.name].first = budget.per_second;
    for (const FleetBudget& budget : fleet_budgets(after))
        rates[budget.name].second = budget.per_second;
    Json list = Json::array();
    for (const auto& [name, rate] : rates)
        if (rate.first != rate.second)
            list.push_back(
                {{"budget", name}, {"before_per_s", rate.first}, {"after_per_s", rate.second}});
    return list;
}

// Whom it is for: of the hosts that are there now, as far as their heartbeats say.
Json hosts_hit(const FleetView& view, const std::optional<CanaryHosts>& canaries) {
    size_t all = 0, hit = 0, enforcing = 0, away = 0;
    for (const HostView& host : view.hosts) {
        const bool is_for = !canaries || canaries->has(host.last.id, host.last.name);
        all += host.is_away() ? 0 : 1;
        hit += !host.is_away() && is_for ? 1 : 0;
        enforcing += !host.is_away() && is_for && host.last.mode == "enforce" ? 1 : 0;
        away += host.is_away() && is_for ? 1 : 0;
    }
    return {{"present", all}, {"hit", hit}, {"enforcing", enforcing}, {"away", away}};
}

// What somebody said for a time is over any version.
void warn_of_overrides(const PolicyDesk& desk, std::vector<std::string>& warnings) {
    for (const PolicyOverride& entry : desk.overrides())
        warnings.push_back(entry.change.service + " is overridden by " + entry.actor + " for " +
                           format_seconds(static_cast<double>(desk.left_ms(entry)) / 1000) +
                           " more: " + format_change_values(entry.change) + " holds until then");
}

// They are divided among all hosts, so some can't have others.
void warn_of_shared_budgets(const Policy& before, const Policy& after,
                            std::vector<std::string>& warnings) {
    const auto old = fleet_budgets(before);
    for (const FleetBudget& budget : fleet_budgets(after)) {
        const auto known = std::ranges::find(old, budget.name, &FleetBudget::name);
        if (known != old.end() && known->per_second != budget.per_second)
            warnings.push_back(
                budget.name +
                " is a budget of the whole fleet: the canary has that of before, and "
                "promote sets it");
    }
}

// --- the canary ----------------------------------------------------------------------------------

// A name that nobody has is more likely mistyped than a host that is still to come.
Result<Json> canaries_now(const FleetView& view, const CanaryHosts& canaries,
                          std::vector<std::string>& warnings) {
    Json now = Json::array();
    size_t present = 0;
    for (const HostView& host : view.hosts) {
        present += host.is_away() ? 0 : 1;
        if (!host.is_away() && canaries.has(host.last.id, host.last.name))
            now.push_back(host.last.name + " (" + host.last.id.substr(0, 8) + ')');
    }
    for (const std::string& named : canaries.hosts())
        if (std::ranges::none_of(view.hosts, [&](const HostView& host) {
                return CanaryHosts::is_called(named, host.last.id, host.last.name);
            }))
            return make_error(ErrorCode::not_found, "--canary: the fleet has no host " + named,
                              "its hosts, with their ids: sluicectl policy history");
    if (now.empty())
        warnings.emplace_back("no host is among the canaries now; a larger part would have some");
    else if (now.size() == present)
        warnings.emplace_back("all hosts are canaries: there is nobody to compare them with");
    return now;
}

// --- the push ------------------------------------------------------------------------------------

Error somebody_else(const PolicyPushed& answer, uint64_t base) {
    if (answer.last == 0)
        return failed("Redis has no policy of the fleet any more, so none after version " +
                          std::to_string(base),
                      "to give it this one: leave out --base");
    return failed("version " + std::to_string(answer.last) + " was pushed after version " +
                      std::to_string(base) +
                      (answer.theirs ? ", by " + pushed_by(*answer.theirs) : ""),
                  "look at it: sluicectl policy show --version " + std::to_string(answer.last) +
                      "; then push with --base " + std::to_string(answer.last));
}

}  // namespace

Result<Answer> push_policy(const PolicyPushOptions& options, const Session& session) {
    if (const Status reason = check_reason(options.reason); !reason)
        return reason.error();
    std::optional<uint64_t> base;
    if (options.base) {
        const auto parsed = parse_version("--base", *options.base);
        if (!parsed)
            return parsed.error();
        base = *parsed;
    }
    std::optional<CanaryHosts> canaries;
    if (options.canary) {
        auto parsed = CanaryHosts::parse(*options.canary);
        if (!parsed)
            return parsed.error();
        canaries = *std::move(parsed);
    }
    auto desk = PolicyDesk::open(session);
    if (!desk)
        return desk.error();
    const auto push = read_file_to_push(options.path, desk->own());
    if (!push)
        return push.error();
    if (const Status fits = check_capacity(push->config.policy, options.force); !fits)
        return fits.error();
    const PolicyPointers& pointers = desk->pointers();
    if (canaries && pointers.current == 0)
        return failed("the fleet has no policy yet that a canary could be compared with",
                      "push one for all hosts first, without --canary");
    const auto before = policy_before(*desk);
    if (!before)
        return before.error();
    Answer answer;
    answer.warnings = push->warnings;
    if (const Status fits = desk->check_overrides(push->config, options.force, answer.warnings);
        !fits)
        return fits.error();
    warn_of_overrides(*desk, answer.warnings);
    const auto view = read_all_hosts(desk->fleet().redis(), desk->fleet().fleet());
    if (!view)
        return view.error().with_context("Redis");
    Json canary_names;
    if (canaries) {
        auto now = canaries_now(*view, *canaries, answer.warnings);
        if (!now)
            return now.error();
        canary_names = *std::move(now);
        warn_of_shared_budgets(*before, push->config.policy, answer.warnings);
    }

    PolicyPushed pushed;
    const std::string for_whom = canaries ? "for " + canaries->to_string() : "for all hosts";
    if (!options.dry_run) {
        const Status recorded = desk->fleet().record(
            session,
            {"policy push", "fleet " + desk->fleet().fleet(),
             pointers.current == 0 ? "" : "version " + std::to_string(pointers.current),
             push->config.source + ", " + plural(push->text.size(), "byte") + ", " + for_whom,
             options.reason},
            answer.warnings);
        if (!recorded)
            return recorded.error();
        const auto reply = desk->fleet().write_replicated(policy_push_command(
            desk->keys(), {.text = push->text,
                           .base = base,
                           .above = desk->version_here(),
                           .after_ms = desk->stamp_here_ms(),
                           .canaries = canaries ? canaries->to_string() : "",
                           .actor = session.who.name,
                           .from = session.who.from ? session.who.from->to_string() : "",
                           .note = options.reason}));
        const auto done = reply ? parse_policy_pushed(*reply) : reply.error();
        if (!done)
            return done.error();
        if (done->version == 0)
            return somebody_else(*done, base.value_or(0));
        pushed = *done;
        session.made();
        answer.changed = true;
        if (!canaries)
            desk->write_shared_budgets(answer.warnings);
    } else if (base && *base != pointers.last) {
        PolicyPushed theirs{.last = pointers.last};
        if (const auto stored = desk->read(pointers.last))
            theirs.theirs = stored->about;
        return somebody_else(theirs, *base);
    }
    answer.data = {{"fleet", desk->fleet().fleet()},
                   {"version", options.dry_run ? Json() : Json(pushed.version)},
                   {"before", pointers.current == 0 ? Json() : Json(pointers.current)},
                   {"canary", canaries ? Json(canaries->to_string()) : Json()},
                   {"canaries_now", canary_names},
                   {"services", push->config.policy.services.size()},
                   {"changes", changes_between(*before, push->config.policy)},
                   {"budgets", budgets_between(*before, push->config.policy)},
                   {"hosts", hosts_hit(*view, canaries)},
                   {"dry_run", options.dry_run}};
    return answer;
}

void show_push(const Json& data, Screen& screen) {
    const bool dry_run = data["dry_run"];
    const auto fleet = data["fleet"].get<std::string>();
    const std::string version =
        dry_run ? "This" : "Version " + data["version"].dump() + " of fleet " + fleet;
    std::string text =
        version + (dry_run ? " would be fleet " + fleet + "'s policy" : " is pushed");
    if (data["canary"].is_null())
        text += dry_run ? " on all hosts." : "; all hosts have it within a second.";
    else
        text += " for " + data["canary"].get<std::string>() + ": " +
                plural(data["canaries_now"].size(), "host") + " now.";
    screen.line(text);
    for (const Json& host : data["canaries_now"])
        screen.line("  " + host.get<std::string>());
    std::vector<Row> rows;
    const auto words = [](const Json& value) {
        return value.is_null() ? std::string("-") : value.get<std::string>();
    };
    for (const Json& change : data["changes"])
        rows.push_back({{change["what"].get<std::string>()},
                        {words(change["before"])},
                        {words(change["after"])}});
    if (rows.empty())
        screen.line("It changes no limit.");
    else
        screen.table({{"WHAT"}, {"BEFORE"}, {"AFTER"}}, rows);
    for (const Json& budget : data["budgets"]) {
        const auto rate = [&](const char* field) {
            return budget[field].is_null() ? std::string("nothing shared")
                                           : format_short(budget[field].get<double>()) + "/s";
        };
        screen.line("The fleet shares " + rate("after_per_s") + " of " +
                    budget["budget"].get<std::string>() + (dry_run ? ", now " : ", before ") +
                    rate("before_per_s") + '.');
    }
    if (dry_run) {
        const Json& hosts = data["hosts"];
        screen.line("It would be for " + hosts["hit"].dump() + " of " +
                    plural(hosts["present"].get<uint64_t>(), "host") + ", of which " +
                    hosts["enforcing"].dump() + " enforce; " + hosts["away"].dump() +
                    " more are away now.");
    }
    if (!data["canary"].is_null() && !dry_run)
        screen.line(
            "To give it to all: sluicectl policy promote; to take it back: sluicectl policy "
            "rollback");
}

}  // namespace sluice::cli
