#include "fleet/lease_message.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "budget.lua.h"
#include "lease.lua.h"

namespace sluice {

namespace {

static_assert(std::endian::native == std::endian::little, "messages are read as they lie");

constexpr size_t kHeaderBytes = 1 + 5 * sizeof(uint32_t);
constexpr size_t kGrantBytes = 1 + 3 * sizeof(double);
constexpr size_t kLongestName = 255;

// Marks of a row, as lease.lua has them.
constexpr uint8_t kSaturated = 1, kTokens = 2, kUnknown = 4, kAwaited = 8;

template <class T>
void append(std::string& out, T value) {
    std::array<char, sizeof(T)> bytes;
    std::memcpy(bytes.data(), &value, sizeof(T));
    out.append(bytes.data(), bytes.size());
}

template <class T>
T take(std::string_view& in) {
    T value;
    std::memcpy(&value, in.data(), sizeof(T));
    in.remove_prefix(sizeof(T));
    return value;
}

std::chrono::milliseconds take_ms(std::string_view& in) {
    return std::chrono::milliseconds(take<uint32_t>(in));
}

// The shortest text that reads back as the same number.
std::string exact(double value) {
    std::array<char, 32> text;
    const int length = std::snprintf(text.data(), text.size(), "%.17g", value);
    return {text.data(), static_cast<size_t>(length)};
}

bool is_amount(double value) {
    return std::isfinite(value) && value >= 0;
}

}  // namespace

unsigned lease_shard(std::string_view service) {
    // FNV-1a, 32 bits.
    uint32_t hash = 2'166'136'261U;
    for (const char c : service)
        hash = (hash ^ static_cast<uint8_t>(c)) * 16'777'619U;
    return hash % kLeaseShards;
}

std::string budget_name(std::string_view service, Dimension dimension) {
    return std::string(service) + '.' + std::string(dimension_name(dimension));
}

LeaseKeys::LeaseKeys(std::string_view fleet, unsigned shard)
    : state("sluice:{" + std::string(fleet) + ":l" + std::to_string(shard) + "}"),
      expiries(state + ":expiry") {}

const redis::Script& lease_script() {
    return lua::kLease;
}

const redis::Script& budget_script() {
    return lua::kBudget;
}

redis::Command lease_command(const redis::Script& script, const LeaseKeys& keys,
                             const LeaseRequest& request) {
    std::string rows;
    for (const LeaseDemand& demand : request.demands) {
        const std::string_view name = std::string_view(demand.budget).substr(0, kLongestName);
        append(rows, static_cast<uint8_t>(name.size()));
        rows.append(name);
        append(rows, demand.per_second);
        append(rows, demand.claim);
        append(rows, static_cast<uint8_t>(demand.idle));
    }
    redis::Command command = script.call({keys.state, keys.expiries});
    command.add(request.pool == LeasePool::enforce ? "enforce" : "observe")
        .add(request.host)
        .add_run_id()
        .add(request.seq)
        .add(request.acked_seq)
        .add(request.since_acked_ms)
        .add(request.period.count())
        .add(request.round_cost_us)
        .add(request.longest_lease.count())
        .add(request.demands.size())
        .add(rows);
    return command;
}

Result<LeaseReply> parse_lease_reply(std::string_view reply, const LeaseRequest& request) {
    const Error bad = failed("Redis's answer to a lease is none of lease.lua",
                             "do all hosts of the fleet run the same version of Sluice?");
    if (reply.size() < kHeaderBytes)
        return bad;
    LeaseReply parsed;
    const auto status = take<uint8_t>(reply);
    if (status > static_cast<uint8_t>(LeaseStatus::duplicate))
        return bad;
    parsed.status = static_cast<LeaseStatus>(status);
    parsed.renew_in = take_ms(reply);
    parsed.length = take_ms(reply);
    parsed.idle_length = take_ms(reply);
    parsed.longest_lease = take_ms(reply);
    parsed.hosts = take<uint32_t>(reply);
    if (parsed.status == LeaseStatus::duplicate)
        return parsed;
    if (reply.size() != request.demands.size() * kGrantBytes)
        return bad;
    while (!reply.empty()) {
        LeaseGrant grant;
        const auto marks = take<uint8_t>(reply);
        grant.saturated = (marks & kSaturated) != 0;
        grant.tokens = (marks & kTokens) != 0;
        grant.unknown = (marks & kUnknown) != 0;
        grant.awaited = (marks & kAwaited) != 0;
        grant.grant = take<double>(reply);
        grant.burst = take<double>(reply);
        grant.budget = take<double>(reply);
        if (!is_amount(grant.grant) || !is_amount(grant.burst) || !is_amount(grant.budget))
            return bad;
        parsed.grants.push_back(grant);
    }
    return parsed;
}

redis::Command budget_command(const redis::Script& script, const LeaseKeys& keys, uint64_t version,
                              std::chrono::milliseconds at, std::span<const FleetBudget> budgets) {
    redis::Command command = script.call({keys.state, keys.expiries});
    command.add(version).add(at.count());
    for (const FleetBudget& budget : budgets)
        command.add(budget.name)
            .add(exact(budget.per_second))
            .add(exact(budget.burst))
            .add(exact(budget.unit));
    return command;
}

}  // namespace sluice
