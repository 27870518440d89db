#include "gate/why.h"

#include <bpf/bpf.h>

#include <algorithm>

#include "base/quantities.h"
#include "base/text.h"
#include "gate/counters.h"
#include "gate/inquiry.h"
#include "gate/policy_store.h"
#include "gate/publish.h"
#include "gate/service_ids.h"
#include "gate/source_rules.h"
#include "policy/find_service.h"
#include "policy/rule_id.h"
#include "policy/schedule.h"

namespace sluice {

namespace {

using std::chrono::nanoseconds;

uint32_t port_class(const Tables& tables, uint32_t half, uint32_t selector) {
    const sluice_port_line& line =
        tables.ports[size_t{half} * SLUICE_HALF_PORT_LINES + selector / 32];
    return line.port_class[selector % 32];
}

uint32_t destination_group(const Tables& tables, uint32_t half, const IpAddress& destination) {
    const sluice_policy& policy = tables.policy[half];
    for (uint32_t i = 0; i < std::min(policy.destination_lengths, SLUICE_MAX_LENGTHS); ++i) {
        const uint32_t length = policy.destination_length[i];
        const sluice_address network =
            sluice_network({destination.high64(), destination.low64()}, length);
        const sluice_destination_key key{network.high, network.low, length, half};
        uint32_t group = 0;
        if (bpf_map_lookup_elem(tables.destinations.get(), &key, &group) == 0)
            return group;
    }
    return 0;
}

// --- who ---------------------------------------------------------------------------------------

std::optional<nanoseconds> left_until(uint64_t until_ns, uint64_t now_ns) {
    if (until_ns == SLUICE_NEVER || until_ns <= now_ns)
        return std::nullopt;
    return nanoseconds(static_cast<int64_t>(until_ns - now_ns));
}

// Of several lists that say the same of a prefix, the one whose word lasts longest.
const ListedRule* longest_word(const SourceMatch& match, RuleKind kind) {
    const ListedRule* longest = nullptr;
    for (const ListedRule& rule : match.listed)
        if (rule.kind == kind && (longest == nullptr || rule.until_ns > longest->until_ns))
            longest = &rule;
    return longest;
}

// Where an allow of the policy has no actor, its list says whose it is.
std::string actor_of(const ListedRule& rule) {
    return rule.actor.empty() ? rule.list : rule.actor;
}

void describe_ban(const SourceLookup& found, uint64_t now_ns, Why& why) {
    const bool by_hand = !found.deciding;
    const uint64_t by_hand_until = found.by_hand_until_ns.value_or(0);
    why.rule = by_hand ? "bans.manual" : "bans";
    why.actor = by_hand ? "bpftool" : "";
    uint64_t until = by_hand_until;
    if (!by_hand) {
        until = std::max(until, found.deciding->until_ns);
        why.notes.push_back(found.deciding->prefix.to_string() + " is banned");
        if (const ListedRule* rule = longest_word(*found.deciding, RuleKind::ban)) {
            why.rule = "bans." + std::string(source_of(rule->list));
            why.actor = actor_of(*rule);
            if (is_fleet_list(rule->list))
                why.notes.emplace_back("the fleet's ban, on every host");
            if (!rule->reason.empty())
                why.notes.push_back("reason: " + rule->reason);
        }
    }
    why.expires_in = left_until(until, now_ns);
}

// ", for another 2h": in a unit that is fine enough, and never too short.
std::string for_another(const ListedRule& rule, uint64_t now_ns) {
    using std::chrono::ceil, std::chrono::hours, std::chrono::minutes, std::chrono::seconds;
    const auto left = left_until(rule.until_ns, now_ns);
    if (!left)
        return {};
    const nanoseconds rounded = *left > hours(10)    ? nanoseconds(ceil<hours>(*left))
                                : *left > minutes(2) ? nanoseconds(ceil<minutes>(*left))
                                                     : nanoseconds(ceil<seconds>(*left));
    return ", for another " + format_duration(rounded);
}

// " (a gateway; grace after an unban, for another 60s)"
std::string protectors(const SourceLookup& found, uint64_t now_ns) {
    std::string text;
    if (found.deciding)
        for (const ListedRule& rule : found.deciding->listed)
            if (rule.kind == RuleKind::protect)
                text += (text.empty() ? "" : "; ") +
                        (rule.reason.empty() ? rule.list : rule.reason) + for_another(rule, now_ns);
    return text.empty() ? text : " (" + text + ')';
}

// Who lets it pass where no limit was asked, or in spite of what it was asked for.
void describe_allow(const SourceLookup& found, uint64_t now_ns, Why& why) {
    const bool exempt = found.standing == SourceStanding::exempt;
    const std::string prefix = found.deciding ? found.deciding->prefix.to_string() : "it";
    const ListedRule* rule =
        found.deciding ? longest_word(*found.deciding, RuleKind::allow) : nullptr;
    const bool decides = why.verdict == counter_name(sluice_counter_index(
                                            exempt ? SLUICE_pass_exempt : SLUICE_pass_allowed, 0));
    std::string by;
    if (rule != nullptr) {
        by = " by " + actor_of(*rule) + for_another(*rule, now_ns);
        if (decides) {
            why.actor = actor_of(*rule);
            why.expires_in = left_until(rule->until_ns, now_ns);
        }
    }
    why.notes.push_back(
        prefix + (exempt ? " is exempt" + by + ": no limits, no budgets"
                         : " is allowed" + by + ": no limits per source, budgets still count"));
    if (rule != nullptr && !rule->reason.empty())
        why.notes.push_back("reason: " + rule->reason);
}

void note_standing(const SourceLookup& found, uint64_t now_ns, Why& why) {
    if (found.standing == SourceStanding::allowed || found.standing == SourceStanding::exempt)
        describe_allow(found, now_ns, why);
    else if (found.standing == SourceStanding::guarded)
        why.notes.push_back((found.deciding ? found.deciding->prefix.to_string() : "it") +
                            " is protected" + protectors(found, now_ns) +
                            ": only --force bans it, limits still hold");
}

// --- which services ----------------------------------------------------------------------------

Result<std::vector<uint32_t>> asked_services(const Tables& tables, const Question& question) {
    if (question.service) {
        const auto id = find_service_id(tables, *question.service);
        if (!id && *question.service != "other")
            return make_error(ErrorCode::not_found,
                              "the policy has no service " + in_quotes(*question.service),
                              "see them with: sluicectl services");
        return std::vector{id.value_or(SLUICE_SERVICE_OTHER)};
    }
    if (question.protocol)
        return std::vector{
            service_of(tables, *question.protocol, question.port, question.destination)};
    std::vector<uint32_t> all;
    for (const auto& [name, id] : service_ids(tables))
        all.push_back(id);
    if (all.empty())
        all.push_back(SLUICE_SERVICE_OTHER);
    std::sort(all.begin(), all.end());
    return all;
}

bool limits_connections(const sluice_service& service) {
    constexpr uint32_t kBit = 1u << SLUICE_CONNECTIONS;
    const uint32_t limited = service.source_limits | service.prefix_limits | service.budget_limits;
    return service.window.limit != 0 || (limited & kBit) != 0;
}

std::vector<PacketKind> asked_kinds(const Question& question, const sluice_service& service) {
    if (question.kind != PacketKind::automatic)
        return {question.kind};
    const bool is_tcp = question.protocol.value_or(IPPROTO_TCP) == IPPROTO_TCP;
    if (!is_tcp && question.protocol != IPPROTO_UDP)
        return {PacketKind::other};
    if (is_tcp && limits_connections(service))
        return {PacketKind::connection, PacketKind::data};
    return {PacketKind::data};
}

// The strictest answer of all services and kinds in question.
Result<Answer> ask_all(const Tables& tables, const IpAddress& source, const Question& question,
                       const SourceLookup& found, const std::optional<Policy>& policy) {
    const auto services = asked_services(tables, question);
    if (!services)
        return services.error();
    std::optional<Answer> strictest;
    for (const uint32_t id : *services)
        for (const PacketKind kind : asked_kinds(question, service_in_force(tables, id))) {
            auto answer = ask_limits(tables, {source, id, kind, found, policy});
            if (!answer)
                return answer.error();
            if (!strictest || answer->is_stricter_than(*strictest))
                strictest = *std::move(answer);
        }
    if (services->size() > 1)
        strictest->why.notes.push_back("the strictest of " + std::to_string(services->size()) +
                                       " services; name one with --service or --port");
    return *std::move(strictest);
}

// Whose number a limit has: the policy's own, or that of a schedule.
void name_schedule(const Policy& policy, Why& why) {
    const auto rule = parse_rule_id(why.rule);
    const Service* service = rule ? find_service(policy, rule->service) : nullptr;
    if (service == nullptr)
        return;
    for (const Schedule& schedule : service->schedules)
        if (schedule.in_force.contains(rule->rule)) {
            why.actor = "schedule:" + schedule.name;
            why.notes.push_back("the number of " + rule->service + " for " +
                                format_times(schedule));
        }
}

}  // namespace

uint32_t service_of(const Tables& tables, uint8_t protocol, std::optional<uint16_t> port,
                    const std::optional<IpAddress>& destination) {
    const uint32_t half = half_in_force(tables);
    uint32_t selector = kProtocolStart + protocol;
    if (protocol == IPPROTO_TCP || protocol == IPPROTO_UDP)
        selector = (protocol == IPPROTO_UDP ? kUdpStart : 0) + port.value_or(0);
    uint32_t cell = port_class(tables, half, selector);
    if (destination)
        cell += tables.policy[half].port_classes * destination_group(tables, half, *destination);
    return tables.cells[size_t{half} * SLUICE_HALF_CELL_LINES + cell / 32].service[cell % 32];
}

Result<Why> why(Tables& tables, const IpAddress& source, const Question& question) {
    const uint64_t now_ns = gate_now_ns(tables);
    const uint32_t mode = sluice_switch_value(published(tables.settings().mode), now_ns);
    const auto found = SourceRules(tables).lookup(source);
    if (!found)
        return found.error();
    const auto installed = current_policy(tables);
    std::optional<Policy> policy;
    if (installed)
        policy = installed->policy;

    Answer answer;
    if (found->standing == SourceStanding::banned) {
        answer.why.verdict =
            counter_name(sluice_counter_index(SLUICE_drop_banned, mode != SLUICE_MODE_ENFORCE));
        describe_ban(*found, now_ns, answer.why);
    } else {
        auto asked = ask_all(tables, source, question, *found, policy);
        if (!asked)
            return asked.error();
        answer = *std::move(asked);
        note_standing(*found, now_ns, answer.why);
    }
    Why& result = answer.why;
    if (policy && result.actor == "policy")
        name_schedule(*policy, result);
    result.policy_version = current_policy_version(tables);
    const auto source_class = size_t{found->source_class};
    if (policy && source_class >= 1 && source_class <= policy->classes.size())
        result.source_class = policy->classes[source_class - 1].name;
    if (mode == SLUICE_MODE_OFF) {
        result.notes.insert(result.notes.begin(),
                            "the gate is off; if it enforced: " + result.verdict);
        result.verdict = counter_name(SLUICE_pass_mode_off);
    } else if (mode == SLUICE_MODE_OBSERVE) {
        result.notes.push_back("the gate is in observe mode: nothing is dropped");
    }
    if (result.policy_version == 0)
        result.notes.push_back("this gate has no policy yet, so no limits");
    return result;
}

}  // namespace sluice
