#include "policy/service_reader.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/text.h"
#include "policy/limit_reader.h"
#include "policy/match.h"
#include "policy/rule_id.h"
#include "policy/schedule_reader.h"
#include "policy/service_table.h"
#include "sluice/limits.h"

namespace sluice {

namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

constexpr std::string_view kOther = "other";
constexpr std::string_view kReserved = "bans";  // Rule ids of bans start with it.
constexpr std::string_view kMatchExample = "[\"tcp/443\"]";

// A match with where it stands, to compare those of all services.
struct PlacedMatch {
    size_t service;
    Match match;
    Field field;
};

void read_limits(TableReader& table, Scope scope, ScaleRange scales, Limits& limits) {
    for (const Dimension dimension : kDimensions) {
        const auto field = table.take(dimension_name(dimension));
        if (!field)
            continue;
        if (const auto limit = read_limit(*field, Rule{scope, dimension}, scales))
            limits.emplace(dimension, *limit);
    }
}

// Below a tick of the clock it would mean nothing.
constexpr std::chrono::milliseconds kShortestJail{10};

std::optional<Jail> read_jail(const Field& on_excess) {
    constexpr std::string_view kExample = "\"police\" or { jail = \"30s\", spoofable = false }";
    if (on_excess.is_string()) {
        if (*on_excess.string(kExample) != "police")
            on_excess.fail(in_quotes(*on_excess.string(kExample)) + " is unknown",
                           "use " + std::string(kExample));
        return std::nullopt;
    }
    auto table = on_excess.table(kExample);
    if (!table)
        return std::nullopt;
    Jail jail;
    if (const auto field = table->require("jail", "\"30s\"")) {
        jail.duration = field->parsed(parse_duration, "\"30s\"").value_or(1s);
        if (jail.duration < kShortestJail || jail.duration > kLongestState)
            field->fail("is out of range", "use a time of \"" + format_duration(kShortestJail) +
                                               "\" to \"" + format_duration(kLongestState) + '"');
    }
    if (const auto field = table->take("spoofable"))
        jail.spoofable = field->boolean().value_or(false);
    table->finish();
    return jail;
}

void read_per_source(const Field& field, ScaleRange scales, Service& service) {
    auto table = field.table("[service.per_source]");
    if (!table)
        return;
    read_limits(*table, Scope::per_source, scales, service.per_source);
    const auto on_excess = table->take("on_excess");
    table->finish();
    if (on_excess) {
        service.jail = read_jail(*on_excess);
        if (service.jail && service.per_source.empty())
            on_excess->fail("jails for excess, but per_source has no limit",
                            "add one such as connections = \"20/s\"");
    }
}

void read_prefix_length(TableReader& table, std::string_view key, unsigned most, unsigned source,
                        unsigned& length) {
    if (const auto field = table.take(key))
        length = static_cast<unsigned>(field->integer(1, most).value_or(length));
    if (length > source)
        table.fail(key,
                   std::to_string(length) + " is longer than sources." + std::string(key) +
                       "_prefix = " + std::to_string(source),
                   "use at most " + std::to_string(source));
}

void read_per_prefix(const Field& field, const Sources& sources, ScaleRange scales,
                     Service& service) {
    auto table = field.table("[service.per_prefix]");
    if (!table)
        return;
    read_prefix_length(*table, "ipv4", 32, sources.ipv4_prefix, service.prefix_ipv4);
    read_prefix_length(*table, "ipv6", 128, sources.ipv6_prefix, service.prefix_ipv6);
    read_limits(*table, Scope::per_prefix, scales, service.per_prefix);
    table->finish();
}

// A switch for which only `false` exists so far.
void read_unavailable_switch(TableReader& table, std::string_view key) {
    if (const auto field = table.take(key); field && field->boolean().value_or(false))
        field->fail("true is not available in this version", "use false");
}

Result<OnRedisLoss> parse_on_redis_loss(std::string_view text) {
    if (text == "hold")
        return OnRedisLoss::hold;
    if (text == "safe")
        return OnRedisLoss::safe;
    if (text == "open")
        return OnRedisLoss::open;
    return failed(in_quotes(text) + " is unknown", "use \"hold\", \"safe\" or \"open\"");
}

// The fleet's where there is one, unless the service says otherwise.
void read_sharing(TableReader& table, const Policy& policy, Service& service) {
    service.shared = policy.redis.has_value() && !service.budget.empty();
    if (const auto shared = table.take("shared")) {
        service.shared = shared->boolean().value_or(false);
        if (service.shared && !policy.redis)
            shared->fail("true needs Redis", "add [redis] url = \"redis://127.0.0.1:6379\"");
    }
    if (const auto loss = table.take("on_redis_loss")) {
        service.on_redis_loss =
            loss->parsed(parse_on_redis_loss, "\"hold\"").value_or(OnRedisLoss::hold);
        if (!service.shared)
            loss->fail("is for a budget that the fleet shares", "remove it, or share the budget");
    }
    if (service.shared && service.on_redis_loss != OnRedisLoss::open && policy.fleet.max_hosts == 0)
        table.fail(
            "on_redis_loss",
            "without Redis each host gets its part of the budget, but of how many is not said",
            "add [fleet] max_hosts = 16, or use on_redis_loss = \"open\"");
}

void read_capacity(const Field& field, Service& service) {
    auto table = field.table("{ data = \"80000/s\" }");
    if (!table)
        return;
    for (const Dimension dimension : kDimensions)
        if (const auto most = table->take(dimension_name(dimension)))
            if (const auto rate = read_rate(*most, dimension))
                service.capacity.emplace(dimension, *rate);
    table->finish();
}

void read_budget(const Field& field, const Policy& policy, Service& service) {
    auto table = field.table("[service.budget]");
    if (!table)
        return;
    for (const Dimension dimension : kDimensions) {
        const auto limit = table->take(dimension_name(dimension));
        if (!limit)
            continue;
        if (const auto bucket = read_budget_limit(*limit, dimension))
            service.budget.emplace(dimension, *bucket);
    }
    read_sharing(*table, policy, service);
    read_unavailable_switch(*table, "fair");
    if (const auto capacity = table->take("capacity"))
        read_capacity(*capacity, service);
    table->finish();
}

std::set<Rule> rules_of(const Service& service) {
    std::set<Rule> rules;
    for (const auto& [dimension, limit] : service.per_source)
        rules.insert({Scope::per_source, dimension});
    for (const auto& [dimension, limit] : service.per_prefix)
        rules.insert({Scope::per_prefix, dimension});
    for (const auto& [dimension, limit] : service.budget)
        rules.insert({Scope::budget, dimension});
    return rules;
}

void read_modes(const Field& field, Service& service) {
    constexpr std::string_view kExample = "{ \"per_source.data\" = \"observe\" }";
    auto table = field.table(kExample);
    if (!table)
        return;
    const std::set<Rule> rules = rules_of(service);
    for (const auto& [key, value] : table->take_all()) {
        if (value.is_table()) {
            value.fail("is a table", "write the rule in quotes: " + std::string(kExample));
            continue;
        }
        const auto rule = parse_rule(key);
        if (!rule || !rules.contains(*rule)) {
            std::string mend = "use one of:";
            for (const Rule known : rules)
                mend += " \"" + format_rule(known) + '"';
            table->fail(key, "is no rule of this service",
                        rules.empty() ? "give the service a limit first" : mend);
            continue;
        }
        if (const auto mode = value.parsed(parse_mode, "\"observe\""))
            service.modes[*rule] = *mode;
    }
}

void read_matches(const Field& field, size_t index, Service& service, std::vector<PlacedMatch>& all,
                  std::vector<std::string>& warnings) {
    const auto items = field.items(kMatchExample);
    if (!items)
        return;
    if (items->empty())
        field.fail("is empty", "use " + std::string(kMatchExample));
    for (const Field& item : *items) {
        const auto text = item.string("\"tcp/443\"");
        if (!text)
            continue;
        bool host_bits_cleared = false;
        const auto match = parse_match(*text, &host_bits_cleared);
        if (!match) {
            item.fail(match.error());
            continue;
        }
        if (host_bits_cleared)
            warnings.push_back(item.at().to_string() + ": " + item.name() + ": " +
                               in_quotes(*text) + " has host bits set; taken as \"" +
                               format_match(*match) + '"');
        service.matches.push_back(*match);
        all.push_back({index, *match, item});
    }
}

// A match among those that it could tie with: of the same protocol, destination and width.
struct Rival {
    uint8_t protocol;
    unsigned width;
    Prefix destination;
    unsigned first_port;
    const PlacedMatch* placed;

    // Equal matches of one service stand side by side.
    [[nodiscard]] auto order() const {
        return std::tuple(protocol, width, destination, first_port, placed->service,
                          placed->match.destination.has_value());
    }
};

// No destination is as unspecific as 0.0.0.0/0 and as ::/0, which share no packet with each other.
std::vector<Rival> rivals_of(const std::vector<PlacedMatch>& all) {
    const Prefix any_ipv4 = *Prefix::make(IpAddress::from_ipv4(0), 0);
    const Prefix any_ipv6 = *Prefix::make(IpAddress::from_bytes({}), 0);
    std::vector<Rival> rivals;
    for (const PlacedMatch& placed : all) {
        const Match& match = placed.match;
        const auto [first, last] = match.ports.value_or(std::pair<uint16_t, uint16_t>());
        const auto add = [&, first = first, last = last](const Prefix& destination) {
            const auto width = static_cast<unsigned>(last - first);
            rivals.push_back({match.protocol, width, destination, first, &placed});
        };
        if (match.destination) {
            add(*match.destination);
        } else {
            add(any_ipv4);
            add(any_ipv6);
        }
    }
    std::stable_sort(rivals.begin(), rivals.end(),
                     [](const Rival& a, const Rival& b) { return a.order() < b.order(); });
    return rivals;
}

void fail_tie(const PlacedMatch& a, const PlacedMatch& b, const std::vector<Service>& services) {
    const PlacedMatch& earlier = a.service <= b.service ? a : b;
    const PlacedMatch& later = a.service <= b.service ? b : a;
    later.field.fail('"' + format_match(later.match) + "\" ties with \"" +
                         format_match(earlier.match) + "\" of service " +
                         in_quotes(services[earlier.service].name),
                     "make one of them more specific, or remove it");
}

// Which service gets a packet must never depend on the order in the file. All of a group are of one
// width, so that of those in front the last one reaches furthest: it and the last one of another
// service are all that need comparing.
void check_ties(const std::vector<PlacedMatch>& all, const std::vector<Service>& services) {
    const Rival* previous = nullptr;
    const Rival* of_another = nullptr;  // the last one whose service is not that of `previous`
    const std::vector<Rival> rivals = rivals_of(all);
    for (const Rival& rival : rivals) {
        if (previous != nullptr && previous->placed->service != rival.placed->service)
            of_another = previous;
        if (of_another != nullptr && is_tie(of_another->placed->match, rival.placed->match))
            fail_tie(*of_another->placed, *rival.placed, services);
        if (previous != nullptr && previous->placed != rival.placed &&
            previous->placed->service == rival.placed->service &&
            previous->placed->match == rival.placed->match)
            rival.placed->field.fail('"' + format_match(rival.placed->match) + "\" stands twice",
                                     "remove one");
        previous = &rival;
    }
}

void check_destinations(const std::vector<PlacedMatch>& all) {
    std::set<Prefix> destinations;
    std::set<unsigned> lengths;  // those of IPv4 are others than those of IPv6
    for (const PlacedMatch& placed : all) {
        if (!placed.match.destination)
            continue;
        const Prefix& destination = *placed.match.destination;
        constexpr unsigned kIpv4Start = 96;  // of 128 bits
        destinations.insert(destination);
        lengths.insert(destination.length() +
                       (destination.family() == Family::ipv4 ? kIpv4Start : 0));
        if (destinations.size() > SLUICE_MAX_DESTINATIONS)
            placed.field.fail("is destination number " + std::to_string(destinations.size()) +
                                  "; the gate holds " + std::to_string(SLUICE_MAX_DESTINATIONS),
                              "match on prefixes instead of single addresses");
        if (lengths.size() > SLUICE_MAX_LENGTHS)
            placed.field.fail("is destination prefix length number " +
                                  std::to_string(lengths.size()) + "; the gate looks up " +
                                  std::to_string(SLUICE_MAX_LENGTHS) + " at most",
                              "use a length that other destinations have");
    }
}

// What only shows when all of it is put together.
void check_table(const Field& first, const std::vector<Service>& services) {
    ServiceIds ids;
    for (const Service& service : services)
        ids.emplace(service.name, static_cast<uint32_t>(ids.size() + 1));
    if (const auto table = compile_services(services, ids); !table)
        first.fail(table.error());
}

class ServicesReader {
  public:
    explicit ServicesReader(Policy& policy)
        : policy_(policy), scales_(scale_range(policy.classes)) {}

    void read(const Field& field) {
        auto table = field.named_table("service");
        if (!table)
            return;
        if (policy_.services.size() == SLUICE_MAX_SERVICES) {
            field.fail("is one service too many",
                       "use at most " + std::to_string(SLUICE_MAX_SERVICES));
            return;
        }
        Service service;
        service.name = table->require_name("login", names_).value_or("");
        if (service.name == kReserved)
            table->fail("name", "is reserved", "use another one such as \"login\"");
        read_match(*table, service);
        if (const auto mode = table->take("mode"))
            service.mode = mode->parsed(parse_mode, "\"observe\"");
        if (const auto exempt = table->take("reply_exempt"))
            service.reply_exempt = exempt->boolean().value_or(true);
        if (const auto limits = table->take("per_source"))
            read_per_source(*limits, scales_, service);
        if (const auto limits = table->take("per_prefix"))
            read_per_prefix(*limits, policy_.sources, scales_, service);
        if (const auto limits = table->take("budget"))
            read_budget(*limits, policy_, service);
        const auto modes = table->take("modes");
        if (const auto schedules = table->take_tables("schedule"))
            read_schedules(*schedules, scales_, service);
        // A limit under a mistyped heading is missing in what modes can name.
        table->finish();
        if (modes)
            read_modes(*modes, service);
        policy_.services.push_back(std::move(service));
    }

    void finish(const Field& first) {
        check_ties(matches_, policy_.services);
        check_destinations(matches_);
        check_table(first, policy_.services);
    }

  private:
    void read_match(TableReader& table, Service& service) {
        if (service.name == kOther) {
            if (table.take("match"))
                table.fail("match", "is not for the service \"other\", which gets the rest",
                           "remove it, or choose another name");
        } else if (const auto field = table.require("match", kMatchExample)) {
            read_matches(*field, policy_.services.size(), service, matches_, policy_.warnings);
        }
    }

    Policy& policy_;
    ScaleRange scales_;
    std::set<std::string> names_;
    std::vector<PlacedMatch> matches_;
};

}  // namespace

void read_services(const std::vector<Field>& tables, Policy& policy) {
    ServicesReader reader(policy);
    for (const Field& table : tables)
        reader.read(table);
    if (!tables.empty())
        reader.finish(tables.front());
}

}  // namespace sluice
