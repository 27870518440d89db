#include "policy/rl_reader.h"

#include <algorithm>
#include <set>

#include "base/quantities.h"
#include "base/text.h"
#include "policy/limit_reader.h"
#include "policy/rule_id.h"

namespace sluice {

namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

constexpr std::string_view kRoutesExample = "{ web = [\"login\", \"search\"] }";
constexpr size_t kLongestPrefix = 64;
constexpr size_t kLongestRoute = 64;
// Each is asked for by name, each second: more of them would be felt in Redis.
constexpr size_t kMostRoutes = 64;  // of one service
constexpr size_t kMostAsns = 64;
// Whole offices, and a carrier's NAT; beyond it a limit of one source means nothing.
constexpr double kMostUsers = 1'000'000;
constexpr double kMostHeadroom = 1'000;
constexpr nanoseconds kLongestBase = std::chrono::hours(24);
// Beyond it no gateway counts.
constexpr double kMostRequests = 1e9;

bool is_prefix(std::string_view text) {
    return !text.empty() && text.size() <= kLongestPrefix &&
           std::ranges::all_of(text, [](char c) { return c > ' ' && c < 127; });
}

void read_routes(const Field& field, RlSettings& rl) {
    auto table = field.table(kRoutesExample);
    if (!table)
        return;
    for (const auto& [service, routes] : table->take_all()) {
        if (!is_valid_name(service))
            routes.fail("is no name of a service", "use " + std::string(kRoutesExample));
        const auto items = routes.items("[\"login\", \"search\"]").value_or(std::vector<Field>{});
        if (items.empty() || items.size() > kMostRoutes)
            routes.fail("has " + std::string(items.empty() ? "no" : "too many") + " routes",
                        "name 1 to " + std::to_string(kMostRoutes));
        std::set<std::string> names;
        for (const Field& item : items) {
            const auto name = item.string("\"login\"");
            if (!name)
                continue;
            if (!is_valid_route(*name))
                item.fail(in_quotes(*name) + " is no route",
                          "use 1 to 64 of a-z, A-Z, 0-9 and \"._/-\"");
            if (!names.insert(*name).second)
                item.fail(in_quotes(*name) + " stands twice", "remove one");
        }
        rl.routes.emplace(service, std::vector(names.begin(), names.end()));
    }
}

void read_asns(const Field& field, RlSettings& rl) {
    const auto items = field.items("[64496, 64511]").value_or(std::vector<Field>{});
    if (items.size() > kMostAsns)
        field.fail("has too many", "name at most " + std::to_string(kMostAsns));
    for (const Field& item : items)
        if (const auto asn = item.integer(1, 0xffffffff)) {
            if (std::ranges::find(rl.asns, *asn) != rl.asns.end())
                item.fail(std::to_string(*asn) + " stands twice", "remove one");
            rl.asns.push_back(static_cast<uint32_t>(*asn));
        }
}

void read_local(const Field& field, RlSettings& rl) {
    auto table = field.table("[rl.local]");
    if (!table)
        return;
    for (const RlField& known : kRlFields) {
        const auto value = table->take(known.name);
        if (!value)
            continue;
        if (known.is_whole) {
            if (const auto number = value->integer(static_cast<uint64_t>(known.least),
                                                   static_cast<uint64_t>(known.most)))
                rl.local.*known.member = static_cast<double>(*number);
        } else {
            rl.local.*known.member = value->number(known.least, known.most);
        }
    }
    table->finish();
}

}  // namespace

const std::array<RlField, 4> kRlFields = {{
    // What is longer than the gate's state can last is no window.
    {"window_ms", &RlNumbers::window_ms, 10, SLUICE_MAX_SPAN_NS / 1e6, true},
    {"limit", &RlNumbers::limit, 1, kMostRequests, true},
    {"bucket_cap", &RlNumbers::bucket_cap, 1, kMostRequests, false},
    {"bucket_rate", &RlNumbers::bucket_rate, 0.001, kMostRequests, false},
}};

bool is_valid_route(std::string_view route) {
    return !route.empty() && route.size() <= kLongestRoute &&
           std::ranges::all_of(route, [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '_' || c == '/' || c == '-';
           });
}

void read_rl(const Field& field, Policy& policy) {
    auto table = field.table("[rl]");
    if (!table)
        return;
    RlSettings rl;
    bool is_enabled = true;
    if (const auto enabled = table->take("enabled"))
        is_enabled = enabled->boolean().value_or(true);
    if (const auto prefix = table->take("prefix")) {
        rl.prefix = prefix->string("\"rl:\"").value_or(rl.prefix);
        if (!is_prefix(rl.prefix))
            prefix->fail("is no beginning of a key", "use 1 to 64 characters, such as \"rl:\"");
    }
    if (const auto users = table->take("users_per_source"))
        rl.users_per_source = users->number(1, kMostUsers);
    if (const auto headroom = table->take("headroom"))
        rl.headroom = headroom->number(1, kMostHeadroom).value_or(rl.headroom);
    if (const auto routes = table->take("routes"))
        read_routes(*routes, rl);
    if (const auto asns = table->take("asn"))
        read_asns(*asns, rl);
    if (const auto local = table->take("local"))
        read_local(*local, rl);
    if (const auto after = table->take("base_after")) {
        rl.base_after = after->parsed(parse_duration, "\"10m\"").value_or(rl.base_after);
        if (rl.base_after < 1s || rl.base_after > kLongestBase)
            after->fail("is out of range", "use a time of \"1s\" to \"1d\"");
    }
    if (const auto whitelist = table->take("whitelist"))
        rl.whitelist = whitelist->boolean().value_or(true);
    table->finish();
    if (!policy.redis)
        field.fail("is of no use without Redis", "add [redis] url = \"redis://127.0.0.1:6379\"");
    if (is_enabled)
        policy.rl = std::move(rl);
}

}  // namespace sluice
