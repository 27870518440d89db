#include "policy/parse.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "policy/ban_feed.h"
#include "policy/capacity.h"
#include "policy/config_reader.h"
#include "policy/config_tree.h"
#include "policy/fleet_reader.h"
#include "policy/prefix_reader.h"
#include "policy/risk_reader.h"
#include "policy/rl_reader.h"
#include "policy/rule_id.h"
#include "policy/service_reader.h"
#include "policy/tune_reader.h"
#include "sluice/limits.h"

namespace sluice {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostSources = 1'000'000'000;
constexpr double kLargestScale = SLUICE_MAX_SCALE;
constexpr double kSmallestScale = 1 / kLargestScale;
constexpr size_t kLongestInterfaceName = 15;
// As for `sluicectl allow` without --force.
constexpr unsigned kWidestIpv4 = 8;
constexpr unsigned kWidestIpv6 = 19;
constexpr std::string_view kShorten = "shorten its comments, or name wider prefixes";

// Tables of later versions: known, so that their users learn more than "unknown key".
constexpr std::array<std::string_view, 3> kUnavailable = {
    "asn",
    "forwarder",
    "honeypot",
};

// The different lengths of the prefixes of sources, each of which costs every packet a look-up.
class SourceLengths {
  public:
    void take(const Field& field, const Prefix& prefix) {
        const bool ipv4 = prefix.family() == Family::ipv4;
        auto& lengths = ipv4 ? ipv4_ : ipv6_;
        lengths.insert(prefix.length());
        if (lengths.size() > SLUICE_MAX_LENGTHS)
            field.fail("is " + std::string(ipv4 ? "IPv4" : "IPv6") + " prefix length number " +
                           std::to_string(lengths.size()) + " among allows and classes, that of " +
                           "single addresses included; the gate looks up " +
                           std::to_string(SLUICE_MAX_LENGTHS) + " at most",
                       "write some prefixes as shorter or longer ones");
    }

  private:
    // Single addresses are always among them: those of the host itself are protected.
    std::set<unsigned> ipv4_ = {32};
    std::set<unsigned> ipv6_ = {128};
};

void warn_duplicate(const Field& field, const Prefix& prefix, std::vector<std::string>& warnings) {
    warnings.push_back(field.at().to_string() + ": " + field.name() + ": \"" + prefix.to_string() +
                       "\" stands twice; taken once");
}

void read_interfaces(const Field& field, std::vector<std::string>& interfaces) {
    const auto items = field.items("[\"eth0\"]");
    if (!items)
        return;
    for (const Field& item : *items) {
        const auto name = item.string("\"eth0\"");
        if (!name)
            continue;
        const bool valid = !name->empty() && name->size() <= kLongestInterfaceName &&
                           *name != "." && *name != ".." && std::ranges::all_of(*name, [](char c) {
                               return c > ' ' && c < 127 && c != '/' && c != ':';
                           });
        if (!valid)
            item.fail("is no interface name", "use a name as in \"ip link\", such as \"eth0\"");
        else if (std::find(interfaces.begin(), interfaces.end(), *name) != interfaces.end())
            item.fail(in_quotes(*name) + " stands twice", "remove one");
        if (interfaces.size() == SLUICE_MAX_INTERFACES) {
            field.fail("has too many interfaces",
                       "use at most " + std::to_string(SLUICE_MAX_INTERFACES));
            return;
        }
        interfaces.push_back(*name);
    }
}

void read_allow(const Field& field, Policy& policy, SourceLengths& lengths) {
    const auto items = field.items("[\"192.0.2.0/24\"]");
    if (!items)
        return;
    std::map<Prefix, bool> exempt_by_prefix;
    for (const Field& item : *items) {
        std::optional<Prefix> prefix;
        bool exempt = false;
        if (item.is_string()) {
            prefix = read_prefix(item, policy.warnings);
        } else if (auto table = item.table("\"192.0.2.0/24\" or { prefix = \"192.0.2.0/24\", "
                                           "exempt = true }")) {
            if (const auto text = table->require("prefix", kPrefixExample))
                prefix = read_prefix(*text, policy.warnings);
            if (const auto flag = table->take("exempt"))
                exempt = flag->boolean().value_or(false);
            table->finish();
        }
        if (!prefix)
            continue;
        const auto [same, added] = exempt_by_prefix.emplace(*prefix, exempt);
        if (!added) {
            if (same->second != exempt)
                item.fail('"' + prefix->to_string() + "\" stands twice, once exempt and once not",
                          "remove one");
            warn_duplicate(item, *prefix, policy.warnings);
            continue;
        }
        const bool ipv4 = prefix->family() == Family::ipv4;
        if (prefix->length() < (ipv4 ? kWidestIpv4 : kWidestIpv6))
            item.fail('"' + prefix->to_string() + "\" is too wide to be allowed by mistake",
                      "use /" + std::to_string(ipv4 ? kWidestIpv4 : kWidestIpv6) + " or longer");
        lengths.take(item, *prefix);
        policy.sources.allow.push_back({*prefix, exempt});
    }
}

Result<TableFull> parse_table_full(std::string_view text) {
    if (text == "evict")
        return TableFull::evict;
    if (text == "share")
        return TableFull::share;
    return failed(in_quotes(text) + " is unknown", "use \"evict\" or \"share\"");
}

void read_sources(const Field& field, Policy& policy, SourceLengths& lengths) {
    auto table = field.table("[sources]");
    if (!table)
        return;
    Sources& sources = policy.sources;
    if (const auto capacity = table->take("capacity"))
        sources.capacity = capacity->integer(1, kMostSources).value_or(sources.capacity);
    if (const auto length = table->take("ipv4_prefix"))
        sources.ipv4_prefix = static_cast<unsigned>(length->integer(1, 32).value_or(32));
    if (const auto length = table->take("ipv6_prefix"))
        sources.ipv6_prefix = static_cast<unsigned>(length->integer(1, 128).value_or(64));
    if (const auto allow = table->take("allow"))
        read_allow(*allow, policy, lengths);
    if (const auto choice = table->take("on_table_full"))
        sources.on_table_full =
            choice->parsed(parse_table_full, "\"evict\"").value_or(sources.on_table_full);
    table->finish();
}

void read_classes(const std::vector<Field>& tables, Policy& policy, SourceLengths& lengths) {
    std::set<std::string> names;
    std::map<Prefix, std::string> owners;
    for (const Field& field : tables) {
        auto table = field.named_table("class");
        if (!table)
            continue;
        SourceClass source_class;
        source_class.name = table->require_name("partners", names).value_or("");
        table->refuse_unavailable("asn");
        if (const auto prefixes = table->require("prefixes", "[\"192.0.2.0/24\"]")) {
            const auto items = prefixes->items("[\"192.0.2.0/24\"]").value_or(std::vector<Field>{});
            if (items.empty())
                prefixes->fail("is empty", "use [\"192.0.2.0/24\"]");
            for (const Field& item : items) {
                const auto prefix = read_prefix(item, policy.warnings);
                if (!prefix)
                    continue;
                const auto [owner, added] = owners.emplace(*prefix, source_class.name);
                if (!added && owner->second != source_class.name)
                    item.fail('"' + prefix->to_string() + "\" is already in class \"" +
                                  owner->second + '"',
                              "remove one");
                if (!added) {
                    warn_duplicate(item, *prefix, policy.warnings);
                    continue;
                }
                lengths.take(item, *prefix);
                source_class.prefixes.push_back(*prefix);
            }
        }
        if (const auto scale = table->require("scale", "0.5"))
            source_class.scale = scale->number(kSmallestScale, kLargestScale).value_or(1.0);
        table->finish();
        if (policy.classes.size() == SLUICE_MAX_CLASSES) {
            field.fail("is one class too many",
                       "use at most " + std::to_string(SLUICE_MAX_CLASSES));
            return;
        }
        policy.classes.push_back(std::move(source_class));
    }
}

void read_events(const Field& field, Policy& policy) {
    auto table = field.table("[events]");
    if (!table)
        return;
    if (const auto rate_field = table->take("rate")) {
        if (const auto rate = rate_field->parsed(parse_rate, "\"1000/s\""))
            policy.events_per_second =
                static_cast<double>(rate->count) / std::chrono::duration<double>(rate->per).count();
    }
    if (const auto file = table->take("file")) {
        constexpr std::string_view kExample = "\"/var/log/sluice/events.jsonl\"";
        const std::string where = file->string(kExample).value_or("journal");
        if (!where.starts_with('/') && where != "journal" && where != "stdout")
            file->fail("is no absolute path", "use a path, \"journal\" or \"stdout\"");
        else if (where.find('\0') != std::string::npos)
            file->fail("has a NUL character", "use a path, \"journal\" or \"stdout\"");
        policy.surroundings.events_file = where;
    }
    table->finish();
}

void read_control(const Field& field, Surroundings& around) {
    auto table = field.table("[control]");
    if (!table)
        return;
    if (const auto group = table->take("group")) {
        around.control_group = group->string("\"sluice\"").value_or("");
        if (around.control_group.empty())
            group->fail("names no group", "use \"sluice\"");
    }
    table->finish();
}

// "127.0.0.1:9617", "[::1]:9617"
bool is_endpoint(std::string_view text) {
    const size_t colon = text.rfind(':');
    if (colon == std::string_view::npos)
        return false;
    std::string_view host = text.substr(0, colon);
    const bool bracketed = host.starts_with('[') && host.ends_with(']');
    if (bracketed)
        host = host.substr(1, host.size() - 2);
    const auto address = IpAddress::parse(host);
    unsigned port = 0;
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    return address && (address->family() == Family::ipv6) == bracketed && failure == std::errc{} &&
           end == digits.data() + digits.size() && port > 0 && port <= 65'535;
}

void read_metrics(const Field& field, Surroundings& around) {
    constexpr std::string_view kExample = "\"127.0.0.1:9617\"";
    auto table = field.table("[metrics]");
    if (!table)
        return;
    if (const auto listen = table->require("listen", kExample)) {
        around.metrics_listen = listen->string(kExample).value_or("127.0.0.1:9617");
        if (!is_endpoint(around.metrics_listen))
            listen->fail("is no address with a port", "use " + std::string(kExample));
    }
    table->finish();
}

Result<ConfigTable> read_config(const std::string& path) {
    const auto text = read_config_text(path);
    if (!text)
        return text.error();
    return read_toml(*text, path);
}

}  // namespace

Result<std::string> read_config_text(const std::string& path) {
    return read_input_file(path,
                           {.most_bytes = kLongestConfig,
                            .mend = kShorten,
                            .where_from = "to write one to start from: sluicectl init -o FILE"});
}

Status check_config_size(std::string_view text) {
    if (text.size() <= kLongestConfig)
        return {};
    return failed("the policy's text has " + std::to_string(text.size()) +
                      " bytes; the gate keeps " + std::to_string(kLongestConfig),
                  std::string(kShorten));
}

Result<Policy> read_policy(const ConfigTable& config, std::string_view file_name) {
    Problems problems;
    TableReader root(config, Location{std::string(file_name), 1, 1}, "", problems);
    SourceLengths lengths;
    Policy policy;
    if (const auto mode = root.take("mode"))
        policy.mode = mode->parsed(parse_mode, "\"observe\"").value_or(policy.mode);
    if (const auto interfaces = root.take("interfaces"))
        read_interfaces(*interfaces, policy.interfaces);
    if (const auto xdp_mode = root.take("xdp_mode"))
        policy.xdp_mode = xdp_mode->parsed(parse_xdp_mode, "\"auto\"").value_or(policy.xdp_mode);
    if (const auto sources = root.take("sources"))
        read_sources(*sources, policy, lengths);
    const auto services = root.take_tables("service");
    const auto classes = root.take_tables("class");
    const auto events = root.take("events");
    const auto control = root.take("control");
    const auto metrics = root.take("metrics");
    const auto redis = root.take("redis");
    const auto fleet = root.take("fleet");
    const auto tune = root.take("tune");
    const auto rl = root.take("rl");
    const auto risk = root.take("risk");
    const auto feeds = root.take("feeds");
    for (const std::string_view key : kUnavailable)
        root.refuse_unavailable(key);
    // Before the services: [[services]] leaves tables of [service] behind that are none.
    root.finish();

    // First, because services share their budgets by it.
    if (redis)
        read_redis(*redis, policy);
    if (fleet)
        read_fleet(*fleet, policy);
    // Before the services, because their limits must hold under every scale.
    if (classes)
        read_classes(classes->tables("class"), policy, lengths);
    if (services)
        read_services(services->tables("service"), policy);
    if (events)
        read_events(*events, policy);
    if (control)
        read_control(*control, policy.surroundings);
    if (metrics)
        read_metrics(*metrics, policy.surroundings);
    if (tune)
        read_tune(*tune, policy);
    if (rl)
        read_rl(*rl, policy);
    if (risk)
        read_risk(*risk, policy);
    if (feeds)
        (void)read_feeds(*feeds, policy.warnings);
    if (problems.first())
        return *problems.first();
    for (std::string& above : above_capacity(policy))
        policy.warnings.push_back(std::move(above));
    return policy;
}

Result<Policy> parse_policy(std::string_view toml_text, std::string_view file_name) {
    const auto config = read_toml(toml_text, file_name);
    if (!config)
        return config.error();
    return read_policy(*config, file_name);
}

Result<ConfigTable> load_config(const std::string& path) {
    auto config = read_config(path);
    if (!config)
        return config;
    const auto more = drop_ins(path);
    if (!more)
        return more.error();
    for (const std::string& name : *more) {
        auto added = read_config(name);
        if (!added) {
            Error error = added.error();
            if (error.hint.empty())
                error.hint = "mend it, or take it out of conf.d";
            return error;
        }
        if (auto status = merge(*config, *std::move(added)); !status)
            return status.error();
    }
    return config;
}

Result<Policy> load_policy(const std::string& path) {
    const auto config = load_config(path);
    if (!config)
        return config.error();
    return read_policy(*config, path);
}

Result<std::vector<std::string>> drop_ins(const std::string& path) {
    const fs::path folder = fs::path(path).parent_path() / "conf.d";
    std::vector<std::string> found;
    std::error_code failure;
    fs::directory_iterator entry(folder, failure);
    if (failure == std::errc::no_such_file_or_directory)
        return found;
    for (; !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
        const bool hidden = entry->path().filename().string().starts_with('.');
        if (!hidden && entry->path().extension() == ".toml")
            found.push_back(entry->path().string());
    }
    if (failure)
        return from_errno(failure.value(), "read " + folder.string());
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace sluice
