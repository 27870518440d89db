#include "gate/switches.h"

#include <algorithm>
#include <functional>

#include "base/quantities.h"
#include "base/suggest.h"
#include "base/text.h"
#include "gate/attachment.h"
#include "gate/policy_store.h"
#include "gate/publish.h"
#include "gate/service_ids.h"
#include "gate/switch_word.h"
#include "policy/compile.h"

namespace sluice {

namespace {

using std::chrono::nanoseconds;

constexpr std::string_view kGate = "gate";
constexpr std::string_view kPolicy = "policy";
constexpr std::string_view kAttach = "attach:";
constexpr std::string_view kAll = "all";

// Where a switch lies; then_ns is where a confirmed change finds its end.
struct Place {
    __u64* word;
    __u64* then_ns;
};

Place place_of(sluice_switch& s) {
    return {&s.word, &s.then_ns};
}

Error no_service(const Tables& tables, const std::string& name) {
    const ServiceIds ids = service_ids(tables);
    std::vector<std::string_view> names;
    for (const auto& [known, id] : ids)
        names.push_back(known);
    const auto nearest = nearest_word(name, names);
    return make_error(
        ErrorCode::not_found, "the policy has no service " + in_quotes(name),
        nearest ? "did you mean \"" + *nearest + "\"?" : "see them with: sluicectl services");
}

Error no_rule(const sluice_service& service, const RuleId& id) {
    std::string known;
    for (uint32_t rule = 0; rule < SLUICE_RULES; ++rule)
        if (has_rule(service, rule))
            known += " " + format_rule_id({id.service, rule_from_index(rule)});
    return make_error(
        ErrorCode::not_found, "the policy has no rule \"" + format_rule_id(id) + '"',
        known.empty() ? "service \"" + id.service + "\" has no limits" : "use one of:" + known);
}

Result<Place> find_place(const Tables& tables, const SwitchTarget& target) {
    if (std::holds_alternative<WholeGate>(target))
        return Place{&tables.settings().mode, &tables.settings().mode_then_ns};
    const auto* rule = std::get_if<RuleId>(&target);
    const std::string& name = rule != nullptr ? rule->service : std::get<OneService>(target).name;
    const auto id = find_service_id(tables, name);
    if (!id)
        return no_service(tables, name);
    sluice_service_switches& switches = tables.switches[*id];
    if (rule == nullptr)
        return place_of(switches.service);
    const uint32_t index = rule_index(rule->rule);
    if (const sluice_service& service = service_in_force(tables, *id); !has_rule(service, index))
        return no_rule(service, *rule);
    return place_of(switches.rule[index]);
}

Mode to_mode(uint32_t value) {
    return static_cast<Mode>(value);
}

Mode value_now(const Tables& tables, const __u64& word) {
    return to_mode(sluice_switch_value(published(word), gate_now_ns(tables)));
}

Status check_timing(const SwitchTiming& timing) {
    const auto refuse = [](std::string what, std::string mend) {
        return make_error(ErrorCode::usage, std::move(what), std::move(mend));
    };
    for (const auto& span : {timing.lasts, timing.confirm})
        if (span && *span <= nanoseconds::zero())
            return refuse("a change needs some time", "use a time such as \"10m\"");
    if (timing.lasts && timing.confirm && *timing.lasts <= *timing.confirm)
        return refuse("the change would end before the time for its confirmation does",
                      "use --for with more than --confirm " + format_duration(*timing.confirm));
    return {};
}

// What an operator cannot change here.
Status check_panic(const Tables& tables, const SwitchTarget& target) {
    if (!std::holds_alternative<WholeGate>(target))
        return {};
    const SwitchWord word =
        SwitchWord::from(published(tables.settings().mode)).settled(gate_now_ns(tables));
    if (word.origin != SLUICE_ORIGIN_FLEET || to_mode(word.now) != Mode::off)
        return {};
    return failed("the fleet has switched the gate off, and that beats a host's own word",
                  "end it everywhere: sluicectl mode policy --fleet");
}

// Deadlines are counted from Redis's time anew each time, so they differ a little.
constexpr nanoseconds kSameDeadline = std::chrono::seconds(1);

bool is_same(const SwitchWord& a, const SwitchWord& b) {
    const auto apart = static_cast<int64_t>(a.deadline_ns() - b.deadline_ns());
    SwitchWord c = b;
    if ((a.deadline == 0) == (b.deadline == 0) && std::abs(apart) < kSameDeadline.count())
        c.deadline = a.deadline;
    return a.word() == c.word();
}

SwitchWord word_with_fleet(const Tables& tables, const SwitchTarget& target,
                           const SwitchWord& before, const std::optional<FleetMode>& wanted) {
    const uint64_t now_ns = gate_now_ns(tables);
    if (!wanted)
        return before.without_fleet(now_ns);
    return before.with_fleet(
        to_abi(wanted->mode), now_ns,
        wanted->left ? now_ns + static_cast<uint64_t>(wanted->left->count()) : 0,
        beats_operator(target, wanted->mode));
}

// --- the list ----------------------------------------------------------------------------------

std::optional<nanoseconds> time_left(const SwitchWord& word, uint64_t now_ns) {
    if (word.deadline == 0)
        return std::nullopt;
    return nanoseconds(static_cast<int64_t>(word.deadline_ns() - now_ns));
}

// Calls visit(id, place) for each mode switch in use: the gate's, then those of services.
void for_each_mode(const Tables& tables,
                   const std::function<void(const std::string&, const Place&)>& visit) {
    visit(std::string(kGate), {&tables.settings().mode, &tables.settings().mode_then_ns});
    for (const auto& [name, id] : service_ids(tables)) {
        sluice_service_switches& switches = tables.switches[id];
        visit(name, place_of(switches.service));
        const sluice_service& service = service_in_force(tables, id);
        for (uint32_t rule = 0; rule < SLUICE_RULES; ++rule)
            if (has_rule(service, rule))
                visit(format_rule_id({name, rule_from_index(rule)}), place_of(switches.rule[rule]));
    }
}

std::string attachment_id(const Tables& tables, uint32_t slot) {
    return std::string(kAttach) + present_name(tables.interfaces[slot]);
}

// Everything that can wait for a confirmation, but the modes that a policy brings with it.
struct Pending {
    std::string id;
    SwitchWord word;
    std::function<void()> confirm;
};

std::vector<Pending> confirmable(const Tables& tables) {
    std::vector<Pending> all;
    sluice_gate& gate = tables.settings();
    all.push_back({std::string(kPolicy), SwitchWord::from(published(gate.policy)),
                   [&tables] { confirm_policy(tables); }});
    for (uint32_t slot = 0; slot < tables.sizes.interfaces; ++slot) {
        if (tables.interfaces[slot].attachment == SLUICE_DETACHED)
            continue;
        const SwitchWord word = SwitchWord::from(published(gate.attached[slot]));
        all.push_back({attachment_id(tables, slot), word, [&gate, slot, word] {
                           publish(gate.attached[slot], word.confirmed(0).word());
                       }});
    }
    for_each_mode(tables, [&all](const std::string& id, const Place& place) {
        const SwitchWord word = SwitchWord::from(published(*place.word));
        if (word.is_override())
            all.push_back({id, word, [place, word] {
                               publish(*place.word, word.confirmed(*place.then_ns).word());
                           }});
    });
    std::erase_if(all, [](const Pending& p) { return !p.word.waits; });
    return all;
}

std::string version_of(const Tables& tables, uint32_t half) {
    const uint64_t version = tables.policy[half & 1].version;
    return version == 0 ? "none" : "version " + std::to_string(version);
}

}  // namespace

Result<SwitchTarget> parse_switch_target(std::string_view text) {
    if (text == kGate)
        return SwitchTarget(WholeGate{});
    if (text.find('.') != std::string_view::npos) {
        const auto rule = parse_rule_id(text);
        if (!rule)
            return rule.error();
        return SwitchTarget(*rule);
    }
    if (!is_valid_name(text))
        return make_error(ErrorCode::usage, in_quotes(text) + " is no switch",
                          "use \"gate\", a service or a rule such as \"login.per_source.data\"");
    return SwitchTarget(OneService{std::string(text)});
}

std::string format_switch_target(const SwitchTarget& target) {
    if (const auto* rule = std::get_if<RuleId>(&target))
        return format_rule_id(*rule);
    if (const auto* service = std::get_if<OneService>(&target))
        return service->name;
    return std::string(kGate);
}

Status check_mode_change(const Tables& tables, const SwitchTarget& target, Mode mode,
                         const SwitchTiming& timing) {
    for (const Status& status : {check_timing(timing), check_panic(tables, target)})
        if (!status)
            return status;
    const auto place = find_place(tables, target);
    if (!place)
        return place.error();
    const SwitchWord standing =
        SwitchWord::from(published(*place->word)).settled(gate_now_ns(tables));
    const bool ends = timing.lasts || timing.confirm;
    if (!ends || standing.origin != SLUICE_ORIGIN_OPERATOR || standing.deadline == 0)
        return {};
    const bool is_the_same = to_mode(standing.now) == mode;
    if (is_the_same && timing.confirm.has_value() == standing.waits)
        return {};
    const std::string id = format_switch_target(target);
    const std::string word(mode_name(to_mode(standing.now)));
    if (standing.waits)
        return failed(
            id + ": a change to " + word + " waits for its confirmation, and would be lost",
            "keep it: sluicectl confirm " + id + "; or take it back: sluicectl switch clear " + id);
    return failed(
        id + " is switched to " + word + " for a time, which would be over once this change ends",
        "leave out --for and --confirm, or end it first: sluicectl switch clear " + id);
}

Result<Mode> set_mode(const Tables& tables, const SwitchTarget& target, Mode mode,
                      const SwitchTiming& timing) {
    for (const Status& status :
         {check_mode_change(tables, target, mode, timing), settle_policy(tables)})
        if (!status)
            return status.error();
    const auto place = find_place(tables, target);
    if (!place)
        return place.error();
    const uint64_t now_ns = gate_now_ns(tables);
    const auto end = [now_ns](const std::optional<nanoseconds>& span) {
        return span ? now_ns + static_cast<uint64_t>(span->count()) : 0;
    };
    const uint64_t deadline_ns = end(timing.confirm ? timing.confirm : timing.lasts);
    const SwitchWord before = SwitchWord::from(published(*place->word));
    // Read only where a change is confirmed, so it may be written first.
    *place->then_ns = timing.confirm ? end(timing.lasts) : 0;
    publish(
        *place->word,
        before.with_override(to_abi(mode), now_ns, deadline_ns, timing.confirm.has_value()).word());
    tables.settings().changes++;
    return to_mode(before.settled(now_ns).now);
}

Result<Mode> clear_mode(const Tables& tables, const SwitchTarget& target) {
    for (const Status& status : {check_panic(tables, target), settle_policy(tables)})
        if (!status)
            return status.error();
    const auto place = find_place(tables, target);
    if (!place)
        return place.error();
    const SwitchWord before =
        SwitchWord::from(published(*place->word)).settled(gate_now_ns(tables));
    // What the policy itself brought for a time, or the fleet says, is not the operator's to clear.
    if (before.origin == SLUICE_ORIGIN_OPERATOR || before.after_is_override)
        publish(*place->word, SwitchWord::by_policy(before.policy).word());
    *place->then_ns = 0;
    tables.settings().changes++;
    return to_mode(before.now);
}

bool beats_operator(const SwitchTarget& target, Mode mode) {
    return std::holds_alternative<WholeGate>(target) && mode == Mode::off;
}

bool follows_fleet(const Tables& tables, const SwitchTarget& target,
                   const std::optional<FleetMode>& wanted) {
    const auto place = find_place(tables, target);
    if (!place)
        return true;
    const SwitchWord now = SwitchWord::from(published(*place->word));
    return is_same(now.settled(gate_now_ns(tables)), word_with_fleet(tables, target, now, wanted));
}

Result<std::optional<FleetMode>> follow_fleet(const Tables& tables, const SwitchTarget& target,
                                              const std::optional<FleetMode>& wanted) {
    const auto place = find_place(tables, target);
    if (!place)
        return place.error();
    const uint64_t now_ns = gate_now_ns(tables);
    const SwitchWord before = SwitchWord::from(published(*place->word)).settled(now_ns);
    const SwitchWord after = word_with_fleet(tables, target, before, wanted);
    std::optional<FleetMode> beaten;
    // What waits for its confirmation would go back by itself.
    if (before.origin == SLUICE_ORIGIN_OPERATOR && after.origin == SLUICE_ORIGIN_FLEET &&
        !before.waits)
        beaten = FleetMode{to_mode(before.now), time_left(before, now_ns)};
    if (is_same(before, after))
        return beaten;
    if (after.origin == SLUICE_ORIGIN_FLEET)
        *place->then_ns = 0;
    publish(*place->word, after.word());
    tables.settings().changes++;
    return beaten;
}

Result<Mode> mode_of(const Tables& tables, const SwitchTarget& target) {
    const auto place = find_place(tables, target);
    if (!place)
        return place.error();
    return value_now(tables, *place->word);
}

Result<Mode> effective_mode(const Tables& tables, const SwitchTarget& target) {
    auto mode = mode_of(tables, target);
    if (!mode)
        return mode;
    if (const auto* rule = std::get_if<RuleId>(&target))
        mode = std::min(*mode, *mode_of(tables, OneService{rule->service}));
    return std::min(*mode, value_now(tables, tables.settings().mode));
}

std::vector<SwitchEntry> list_switches(const Tables& tables) {
    const uint64_t now_ns = gate_now_ns(tables);
    std::vector<SwitchEntry> entries;
    for_each_mode(tables, [&](const std::string& id, const Place& place) {
        const SwitchWord word = SwitchWord::from(published(*place.word)).settled(now_ns);
        if (!word.is_override())
            return;
        entries.push_back({id, std::string(mode_name(to_mode(word.now))),
                           word.deadline == 0 ? "" : std::string(mode_name(to_mode(word.after))),
                           time_left(word, now_ns), word.waits,
                           word.deadline != 0 && word.after_is_override,
                           word.origin == SLUICE_ORIGIN_FLEET});
    });
    for (const Pending& pending : confirmable(tables)) {
        const bool waits = pending.word.is_pending(now_ns);
        if (pending.id.starts_with(kAttach)) {
            if (waits)
                entries.push_back({pending.id, "attached", "passes everything",
                                   time_left(pending.word, now_ns), true});
            else
                entries.push_back({pending.id, "passes everything", "", std::nullopt, false});
        } else if (pending.id == kPolicy && waits) {
            entries.push_back({pending.id, version_of(tables, pending.word.now),
                               version_of(tables, pending.word.after),
                               time_left(pending.word, now_ns), true});
        }
    }
    return entries;
}

std::vector<SwitchEntry> list_overrides(const Tables& tables) {
    auto all = list_switches(tables);
    std::erase_if(all, [](const SwitchEntry& entry) {
        return entry.id == kPolicy || entry.id.starts_with(kAttach);
    });
    return all;
}

Result<std::vector<std::string>> confirm_switches(const Tables& tables, std::string_view id) {
    const uint64_t now_ns = gate_now_ns(tables);
    std::vector<std::string> confirmed, late;
    for (const Pending& pending : confirmable(tables)) {
        if (id != kAll && id != pending.id)
            continue;
        if (!pending.word.is_pending(now_ns)) {
            late.push_back(pending.id);
            continue;
        }
        pending.confirm();
        confirmed.push_back(pending.id);
    }
    if (!confirmed.empty())
        return confirmed;
    if (!late.empty())
        return make_error(ErrorCode::not_found,
                          "too late: the change of \"" + late.front() + "\" was taken back",
                          "make it again, and confirm it in time");
    return make_error(ErrorCode::not_found,
                      id == kAll ? "nothing waits for a confirmation"
                                 : in_quotes(id) + " does not wait for a confirmation",
                      "see what does: sluicectl switch list");
}

}  // namespace sluice
