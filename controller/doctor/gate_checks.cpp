// The gate, its policy and its daemon.
#include <netinet/in.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <optional>

#include "control/client.h"
#include "doctor/doctor.h"
#include "gate/counters.h"
#include "gate/source_rules.h"
#include "net/host.h"
#include "operate/protected_sources.h"
#include "policy/find_service.h"

namespace sluice {

namespace {

std::string card_name(const Patient& patient) {
    return patient.cards.empty() ? "eth0" : patient.cards.front().interface.name;
}

// Of what is looked up in the gate: there is none, or none that this user may see.
Finding without_gate(const Patient& patient, std::string what) {
    return may_not_see_gate(patient)
               ? skipped(patient.gate.error().message, doctor_as_root(patient))
               : skipped(std::move(what));
}

Finding check_config(const Patient& patient) {
    if (patient.config_error && patient.config_error->code == ErrorCode::not_permitted)
        return skipped(patient.config_error->message, doctor_as_root(patient));
    // It may have one, which this user cannot see.
    if (!patient.policy && !patient.config_error && may_not_see_gate(patient))
        return skipped(patient.gate.error().message, doctor_as_root(patient));
    if (patient.config_error)
        return failed_check(patient.config_error->message,
                            patient.policy ? "the next reload or start is refused"
                                           : "the gate cannot be told what to limit",
                            patient.config_error->hint.empty()
                                ? "sluicectl policy check " + patient.options.config
                                : patient.config_error->hint);
    if (!patient.policy)
        return warned("no gate, and no " + patient.options.config,
                      "without limits the gate only counts",
                      "sluicectl init -o " + patient.options.config);
    for (const std::string& name : patient.policy->interfaces)
        if (const auto interface = find_interface(name); !interface)
            return warned("it names " + name + ", which does not exist",
                          "that interface is not protected; " + interface.error().hint,
                          "sluicectl policy check " + patient.options.config);
    return passed(std::to_string(patient.policy->services.size()) + " services");
}

Finding check_attached(const Patient& patient) {
    const std::string attach = "sluicectl attach " + card_name(patient);
    if (may_not_see_gate(patient))
        return without_gate(patient, {});
    if (!patient.gate && patient.gate.error().code == ErrorCode::unreachable)
        return warned("no gate in " + patient.options.pin_dir, "nothing is limited or banned",
                      attach);
    if (!patient.gate)
        return failed_check(patient.gate.error().message, "nothing can be changed or looked at",
                            patient.gate.error().hint.empty() ? attach : patient.gate.error().hint);
    const auto acting = std::ranges::count_if(patient.attachments, &Attachment::acts);
    if (acting == 0)
        return failed_check("a gate that is attached nowhere", "everything passes", attach);
    return passed("on " + std::to_string(acting) + (acting == 1 ? " interface" : " interfaces"));
}

std::string text_in(const ControlJson& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// What the daemon says of itself.
Result<ControlJson> ask_status(const Patient& patient) {
    constexpr std::chrono::milliseconds kPatience(2'000);
    auto client = ControlClient::connect(patient.options.socket, kPatience);
    if (!client)
        return client.error();
    ControlRequest request;
    request.words = {"status"};
    const auto answer = client->ask(request);
    if (!answer)
        return make_error(ErrorCode::failed, answer.error().message, "systemctl restart sluiced");
    return answer->value("data", ControlJson::object());
}

Finding check_daemon(const Patient& patient) {
    const auto status = ask_status(patient);
    if (!status && status.error().code == ErrorCode::not_permitted)
        return skipped(status.error().message, doctor_as_root(patient));
    if (!status && status.error().code != ErrorCode::unreachable)
        return failed_check(status.error().message,
                            "what only it does waits: overrides, the fleet, a lost attachment",
                            status.error().hint);
    if (!status && !patient.gate)
        return skipped("does not run; there is no gate to keep", "");
    if (!status)
        return warned("does not run",
                      "the gate works without it, and bans and policy would not outlive a reboot",
                      "systemctl enable --now sluiced");
    const auto daemon = status->value("daemon", ControlJson::object());
    if (const std::string error = text_in(daemon, "config_error"); !error.empty())
        return warned("runs, and refuses its file: " + error, "the configuration before it holds",
                      "sluicectl policy check " + patient.options.config +
                          ", mend it, then: systemctl reload sluiced");
    return passed("runs");
}

// The daemon alone knows how its feeds stand.
Finding check_feeds(const Patient& patient) {
    const auto status = ask_status(patient);
    if (!status)
        return skipped("sluiced does not run, or may not be asked", "see daemon");
    const auto feeds = status->value("feeds", ControlJson::array());
    for (const ControlJson& feed : feeds)
        if (const std::string error = text_in(feed, "error"); !error.empty())
            return warned(
                text_in(feed, "name") + ": " + error,
                "the last list holds until its time is over; what is new on it is not banned",
                "sluicectl status");
    if (feeds.empty())
        return passed("none is configured");
    return passed(std::to_string(feeds.size()) + (feeds.size() == 1 ? " feed is" : " feeds are") +
                  " up to date");
}

// Whom the host needs, and what for; banned by force, because protections beat other bans.
std::optional<ProtectedSource> cut_off(const Patient& patient, SourceRules& rules) {
    const auto needed = wanted_protections(**patient.gate, patient.options.who);
    if (!needed)
        return std::nullopt;
    for (const ProtectedSource& source : *needed)
        if (const auto found = rules.lookup(source.address);
            found && found->standing == SourceStanding::banned)
            return source;
    return std::nullopt;
}

Finding check_lockout(const Patient& patient) {
    const Operator& who = patient.options.who;
    if (may_not_see_gate(patient))
        return without_gate(patient, {});
    if (!patient.gate)
        return passed("no gate that could lock anybody out");
    SourceRules rules(**patient.gate);
    std::vector<std::string> warnings;
    if (const Status looked = warn_of_own_ban(rules, who, warnings); !looked)
        return skipped(looked.error().message, looked.error().hint);
    if (!warnings.empty())
        return failed_check(warnings.front(), "you are cut off once this session ends",
                            "sluicectl unban " + who.from->to_string());
    if (const auto source = cut_off(patient, rules)) {
        const std::string address = source->address.to_string();
        return failed_check(address + " is banned (" + std::string(source->reason) + ')',
                            "the host cannot do without it", "sluicectl unban " + address);
    }
    return passed(who.from
                      ? who.from->to_string() +
                            ", from where you are here, is not banned, nor is what the host needs"
                      : "what the host needs is not banned");
}

bool is_loopback(const IpAddress& address) {
    constexpr uint32_t kFirstOctet = 127;
    return address.family() == Family::ipv4 ? address.ipv4_host_order() >> 24 == kFirstOctet
                                            : address.high64() == 0 && address.low64() == 1;
}

bool is_everywhere(const IpAddress& address) {
    return address == IpAddress() || address == IpAddress::from_ipv4(0);
}

bool covers(const Match& match, const Listener& listener) {
    if (match.protocol != listener.protocol)
        return false;
    if (match.ports && (listener.port < match.ports->first || listener.port > match.ports->second))
        return false;
    // Whoever listens everywhere is reached at that destination, too.
    return !match.destination || is_everywhere(listener.address) ||
           match.destination->contains(listener.address);
}

std::string name_of(const Listener& listener) {
    return (listener.protocol == IPPROTO_TCP ? "tcp/" : "udp/") + std::to_string(listener.port);
}

Finding check_services(const Patient& patient) {
    constexpr uint16_t kFirstEphemeral = 32'768;  // of clients that wait for answers
    constexpr size_t kMostNamed = 5;
    if (!patient.policy)
        return without_gate(patient, "no policy that could cover a port");
    const auto& services = patient.policy->services;
    if (std::ranges::none_of(services, limits_anybody))
        return warned("no service has a limit", "bans alone hold: nobody is too fast",
                      "write limits into " + patient.options.config +
                          ", then: sluicectl policy apply " + patient.options.config);
    const auto other = std::ranges::find(services, "other", &Service::name);
    if (other != services.end() && limits_anybody(*other))
        return passed("what no service names has the limits of \"other\"");
    const auto found = listeners();
    if (!found)
        return skipped(found.error().message, found.error().hint);
    std::vector<std::string> uncovered;
    for (const Listener& listener : *found) {
        const bool is_local = is_loopback(listener.address);
        const bool is_client = listener.protocol == IPPROTO_UDP && listener.port >= kFirstEphemeral;
        const auto knows = [&](const Service& service) {
            return std::ranges::any_of(service.matches,
                                       [&](const Match& match) { return covers(match, listener); });
        };
        const std::string name = name_of(listener);
        if (!is_local && !is_client && std::ranges::none_of(services, knows) &&
            std::ranges::find(uncovered, name) == uncovered.end())
            uncovered.push_back(name);
    }
    if (uncovered.empty())
        return passed("every listening port belongs to one");
    std::string names;
    for (size_t i = 0; i < std::min(uncovered.size(), kMostNamed); ++i)
        names += (i == 0 ? "" : ", ") + uncovered[i];
    if (uncovered.size() > kMostNamed)
        names += " and " + std::to_string(uncovered.size() - kMostNamed) + " more";
    return warned(names + " belong to no service", "no limit holds there",
                  "add a [[service]] with match = [\"" + uncovered.front() +
                      "\"], or limits for name = \"other\"");
}

constexpr int64_t kSecondsOfDay = 86'400;
constexpr int64_t kLongestDays = 30;  // that nobody looked at it

int64_t days_since(uint64_t wall_clock_s) {
    return (static_cast<int64_t>(std::time(nullptr)) - static_cast<int64_t>(wall_clock_s)) /
           kSecondsOfDay;
}

Finding check_review(const Patient& patient) {
    if (!patient.applied_s)
        return without_gate(patient, "no policy is in force");
    const int64_t days = days_since(*patient.applied_s);
    const std::string seen = "the policy is " + std::to_string(days) + " days old";
    if (days >= kLongestDays)
        return warned(seen, "traffic changes, and limits that nobody looks at cut real users first",
                      "sluicectl services, then sluicectl policy apply " + patient.options.config);
    return passed(seen);
}

// Of each list that somebody imports: when its newest word was said.
Result<std::map<std::string, uint64_t>> newest_of_lists(SourceRules& rules) {
    std::map<std::string, uint64_t> newest;
    for (const RuleKind kind : {RuleKind::ban, RuleKind::allow}) {
        const auto listed = rules.list(kind);
        if (!listed)
            return listed.error();
        for (const ListedRule& rule : listed->rules)
            if (rule.list != kOperatorList && rule.list != kPolicyList &&
                !is_reserved_list(rule.list))
                newest[rule.list] = std::max(newest[rule.list], rule.since_s);
    }
    return newest;
}

Finding check_lists(const Patient& patient) {
    if (!patient.gate)
        return without_gate(patient, "no gate");
    SourceRules rules(**patient.gate);
    const auto newest = newest_of_lists(rules);
    if (!newest)
        return skipped(newest.error().message, newest.error().hint);
    for (const auto& [list, since_s] : *newest)
        if (const int64_t days = days_since(since_s); days >= kLongestDays)
            return warned("nothing new in " + list + " for " + std::to_string(days) + " days",
                          "addresses change hands: old lists hit those who came after",
                          "sluicectl bans import FILE --source " + list +
                              ", or sluicectl bans flush --source " + list);
    return passed(newest->empty() ? "none was imported"
                                  : std::to_string(newest->size()) + " with something new");
}

Finding check_bans(const Patient& patient) {
    if (!patient.gate)
        return without_gate(patient, "no gate");
    const auto counts = SourceRules(**patient.gate).counts();
    if (!counts)
        return skipped(counts.error().message, counts.error().hint);
    const std::string seen = std::to_string(counts->bans_enforced) + " in force of " +
                             std::to_string(counts->bans_wanted);
    if (counts->bans_enforced < counts->bans_wanted)
        return failed_check(seen, "banned sources get through", "sluicectl bans");
    return passed(seen);
}

Finding check_tables(const Patient& patient) {
    constexpr double kNearlyFull = 0.9;
    if (!patient.gate)
        return without_gate(patient, "no gate");
    const auto counts = SourceRules(**patient.gate).counts();
    if (!counts)
        return skipped(counts.error().message, counts.error().hint);
    for (const TableUse& table : counts->tables)
        if (table.ratio() >= kNearlyFull)
            return warned(std::string(table.name) + ": " + std::to_string(table.used) + " of " +
                              std::to_string(table.capacity),
                          "without room new bans are refused",
                          "sluicectl bans flush --source NAME, of a list that is no longer needed");
    const SourceUse use = source_use(**patient.gate);
    if (use.evicted_live != 0)
        return warned(std::to_string(use.evicted_live) +
                          " sources lost their state while it "
                          "mattered",
                      "attackers that are forgotten start afresh",
                      "set [sources] capacity to twice what it is, detach, and attach again");
    return passed("room in all of them");
}

constexpr HostCheck kChecks[] = {
    {"config", check_config},   {"gate", check_attached},     {"daemon", check_daemon},
    {"lockout", check_lockout}, {"services", check_services}, {"review", check_review},
    {"lists", check_lists},     {"feeds", check_feeds},       {"bans", check_bans},
    {"tables", check_tables},
};

}  // namespace

std::span<const HostCheck> gate_checks() {
    return kChecks;
}

}  // namespace sluice
