#include "fleet/fleet_view.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <span>

#include "base/text.h"
#include "hosts.lua.h"
#include "shares.lua.h"

namespace sluice {

namespace {

using redis::Reply;
using std::chrono::milliseconds;

constexpr size_t kHostWidth = 3, kBudgetWidth = 2, kRowWidth = 7;

Error no_view() {
    return failed("Redis's view of the fleet makes no sense",
                  "do all hosts of the fleet run the same version of Sluice?");
}

std::string_view text_of(const Reply& reply) {
    const auto text = reply.as_text();
    return text ? *text : std::string_view();
}

// Not a number, or one that no script writes, is 0.
double number_of(const Reply& reply) {
    const std::string_view text = text_of(reply);
    double value = 0;
    (void)std::from_chars(text.data(), text.data() + text.size(), value);
    return std::isfinite(value) && value >= 0 ? value : 0;
}

milliseconds time_of(const Reply& reply) {
    constexpr double kLongest = 1e12;  // decades
    return milliseconds(static_cast<int64_t>(std::min(number_of(reply), kLongest)));
}

Status take_hosts(const Reply& reply, FleetView& view) {
    const auto parts = reply.as_array();
    if (!parts)
        return parts.error();
    if (parts->size() != 2)
        return no_view();
    const auto in_all = (*parts)[0].as_integer();
    const auto hosts = (*parts)[1].as_array();
    if (!in_all || !hosts || hosts->size() % kHostWidth != 0)
        return no_view();
    view.hosts_in_all = static_cast<size_t>(*in_all);
    for (size_t i = 0; i < hosts->size(); i += kHostWidth)
        view.hosts.push_back({parse_heartbeat(text_of((*hosts)[i]), text_of((*hosts)[i + 2])),
                              time_of((*hosts)[i + 1])});
    return {};
}

// So many as are shown, after the `first` that were heard of last.
redis::Command hosts_command(const HostKeys& keys, size_t first) {
    return lua::kHosts.call({keys.seen, keys.words}).add(first).add(kMostHostsShown);
}

std::optional<LeaseView> read_lease(std::span<const Reply> row) {
    const std::string_view member = text_of(row[0]);
    const size_t colon = member.find(':');
    if (colon == std::string_view::npos)
        return std::nullopt;
    const auto counted = row[6].as_integer();
    return LeaseView{
        .host = printable(shortened(member.substr(colon + 1))),
        .pool = member.starts_with("observe:") ? LeasePool::observe : LeasePool::enforce,
        .demand = number_of(row[2]),
        .granted = number_of(row[3]),
        .is_tokens = counted && *counted == 1,
        .age = time_of(row[4]),
        .left = time_of(row[5])};
}

Status take_shares(const Reply& reply, FleetView& view) {
    const auto parts = reply.as_array();
    if (!parts)
        return parts.error();
    if (parts->size() != 3)
        return no_view();
    const auto in_all = (*parts)[0].as_integer();
    const auto budgets = (*parts)[1].as_array();
    const auto rows = (*parts)[2].as_array();
    if (!in_all || !budgets || budgets->size() % kBudgetWidth != 0 || !rows)
        return no_view();
    const auto first = static_cast<ptrdiff_t>(view.budgets.size());
    for (size_t i = 0; i < budgets->size(); i += kBudgetWidth)
        view.budgets.push_back(
            {printable(shortened(text_of((*budgets)[i]))), number_of((*budgets)[i + 1]), {}});
    view.is_cut = view.is_cut || *in_all > static_cast<int64_t>(kMostHostsShown) ||
                  rows->size() >= kMostLeasesShown;
    for (const Reply& row : *rows) {
        const auto fields = row.as_array();
        if (!fields || fields->size() != kRowWidth)
            return no_view();
        const auto lease = read_lease(*fields);
        const auto budget = std::find_if(
            view.budgets.begin() + first, view.budgets.end(),
            [&](const BudgetView& known) { return known.name == text_of((*fields)[1]); });
        if (lease && budget != view.budgets.end())
            budget->leases.push_back(*lease);
    }
    return {};
}

}  // namespace

Result<FleetView> read_fleet_view(Redis& redis, std::string_view fleet,
                                  const std::vector<unsigned>& shards) {
    const HostKeys hosts(fleet);
    std::vector<redis::Command> commands = {hosts_command(hosts, 0)};
    for (const unsigned shard : shards) {
        const LeaseKeys keys(fleet, shard);
        commands.push_back(lua::kShares.call({keys.state, keys.expiries})
                               .add(kMostHostsShown)
                               .add(kMostLeasesShown));
    }
    const auto replies = redis.run(commands);
    if (!replies)
        return replies.error();
    FleetView view;
    if (const Status taken = take_hosts(replies->front(), view); !taken)
        return taken.error();
    for (size_t i = 1; i < replies->size(); i++)
        if (const Status taken = take_shares((*replies)[i], view); !taken)
            return taken.error();
    std::ranges::sort(view.budgets, {}, &BudgetView::name);
    return view;
}

Result<FleetView> read_all_hosts(Redis& redis, std::string_view fleet) {
    auto view = read_fleet_view(redis, fleet, {});
    if (!view)
        return view;
    const HostKeys keys(fleet);
    std::vector<redis::Command> commands;
    const size_t wanted = std::min(view->hosts_in_all, kMostHostsCompared);
    for (size_t first = view->hosts.size(); first < wanted; first += kMostHostsShown)
        commands.push_back(hosts_command(keys, first));
    if (commands.empty())
        return view;
    const auto replies = redis.run(commands);
    if (!replies)
        return replies.error();
    for (const Reply& reply : *replies)
        if (const Status taken = take_hosts(reply, *view); !taken)
            return taken.error();
    // Who was heard of between the calls may be in two of them.
    std::set<std::string> known;
    std::erase_if(view->hosts,
                  [&](const HostView& host) { return !known.insert(host.last.id).second; });
    return view;
}

}  // namespace sluice
