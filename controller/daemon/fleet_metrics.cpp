#include "daemon/fleet_metrics.h"

#include <limits>

#include "observe/families.h"

namespace sluice {

namespace {

using prometheus::MetricType;

void add_budgets(const FleetStanding& standing, Families& out) {
    const auto add = [&](const char* name, const char* help, auto value) {
        out.begin(name, help, MetricType::Gauge);
        for (const BudgetStanding& budget : standing.budgets)
            out.add({{"service", budget.service},
                     {"dimension", std::string(dimension_name(budget.dimension))}},
                    value(budget));
    };
    add("sluice_budget_limit", "Units a second, of the whole fleet",
        [](const BudgetStanding& budget) { return budget.limit; });
    add("sluice_budget_demand", "Units a second asked of this host, past the limits of sources",
        [](const BudgetStanding& budget) { return budget.demand.value_or(0); });
    add("sluice_budget_share", "Units a second that this host lets through; infinite: no limit",
        [](const BudgetStanding& budget) {
            return budget.unlimited ? std::numeric_limits<double>::infinity() : budget.share;
        });
    add("sluice_budget_leased", "1 where the share is leased, 0 where it is that without Redis",
        [](const BudgetStanding& budget) { return budget.is_leased ? 1.0 : 0.0; });
}

// Seconds since 1970; 0: never.
double last_sync(const redis::Health& health) {
    if (health.last_ok == std::chrono::steady_clock::time_point{})
        return 0;
    const auto time =
        std::chrono::system_clock::now() - (std::chrono::steady_clock::now() - health.last_ok);
    return std::chrono::duration<double>(time.time_since_epoch()).count();
}

double breaker_number(redis::BreakerState state) {
    switch (state) {
        case redis::BreakerState::closed:
            return 0;
        case redis::BreakerState::half_open:
            return 1;
        case redis::BreakerState::open:
            break;
    }
    return 2;
}

void add_redis(const FleetStanding& standing, Families& out) {
    const redis::Health& health = standing.redis;
    out.one("sluice_redis_up", "1 where the last call was answered", MetricType::Gauge,
            standing.is_up() ? 1 : 0);
    out.one("sluice_redis_last_sync_timestamp_seconds", "When Redis answered last, since 1970",
            MetricType::Gauge, last_sync(health));
    out.one("sluice_redis_round_trip_seconds", "What an answer takes, over the last dozen",
            MetricType::Gauge, std::chrono::duration<double>(health.round_trip).count());
    out.one("sluice_redis_breaker", "0 closed, 1 half-open, 2 open", MetricType::Gauge,
            breaker_number(health.state));
    out.one("sluice_redis_drill", "1 while a drill of the loss of Redis is on", MetricType::Gauge,
            standing.drill_left.count() != 0 ? 1 : 0);
}

void add_sources(const SourcesStanding& sources, Families& out) {
    const auto count = [&out](const char* name, const char* help, uint64_t value) {
        out.one(name, help, MetricType::Counter, static_cast<double>(value));
    };
    out.one("sluice_fleet_sources_watched", "Sources of which it is known how much they use",
            MetricType::Gauge, static_cast<double>(sources.watched));
    out.one("sluice_fleet_sources_told", "Limits that a source uses to the half and more",
            MetricType::Gauge, static_cast<double>(sources.told));
    out.one("sluice_fleet_sources_shared", "Limits of a source that hold in part only here",
            MetricType::Gauge, static_cast<double>(sources.shared));
    count("sluice_fleet_sources_unplaced_total", "Parts that the source table had no room for",
          sources.unplaced);
    count("sluice_fleet_sources_untold_total", "Calls that Redis had no time or no room for",
          sources.untold);
    count("sluice_fleet_sources_lost_total", "Calls about sources without an answer", sources.lost);
}

}  // namespace

void add_fleet_metrics(const FleetStanding& standing, Families& out) {
    if (standing.is_shared || standing.sources.watched != 0)
        add_sources(standing.sources, out);
    if (!standing.is_shared)
        return;
    add_redis(standing, out);
    add_budgets(standing, out);
    out.one("sluice_lease_calls_lost_total", "Calls for leases without an answer",
            MetricType::Counter, static_cast<double>(standing.lost));
    out.one("sluice_lease_duplicates_total", "Times that another host had the identity of this one",
            MetricType::Counter, static_cast<double>(standing.duplicates));
    out.one("sluice_lease_learning", "1 while Redis learns who holds what", MetricType::Gauge,
            standing.is_learning ? 1 : 0);
    out.one("sluice_fleet_hosts", "Hosts that lease, by the busiest shard", MetricType::Gauge,
            standing.hosts);
}

void add_fleet_policy_metrics(const FleetStanding& fleet, const PolicyStanding& policy,
                              Families& out) {
    if (!policy.is_followed)
        return;
    out.one("sluice_fleet_policy_version",
            "Version of the fleet's policy in force; 0: this host's own file is", MetricType::Gauge,
            static_cast<double>(fleet.policy_version));
    out.one("sluice_fleet_policy_wanted",
            "Version that this host is to have; 0: none, or not heard", MetricType::Gauge,
            static_cast<double>(policy.wanted));
    out.one("sluice_fleet_policy_lost",
            "1 where Redis has no policy, or an older state of it than this host",
            MetricType::Gauge, policy.is_lost || policy.is_older ? 1 : 0);
}

}  // namespace sluice
