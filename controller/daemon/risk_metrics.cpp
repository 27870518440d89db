#include "daemon/risk_metrics.h"

#include <algorithm>
#include <string>

#include "observe/families.h"

namespace sluice {

namespace {

using prometheus::MetricType;

void add_set(const FleetRiskStanding& fleet, Families& out) {
    out.one("sluice_risk_leader", "1 where this host walks the fleet's risk set", MetricType::Gauge,
            fleet.leads ? 1 : 0);
    if (!fleet.leads)
        return;
    out.one("sluice_risk_pass_seconds", "What the last pass over the set took", MetricType::Gauge,
            std::chrono::duration<double>(fleet.pass).count());
    out.begin("sluice_risk_members", "Members of the set in the last pass", MetricType::Gauge);
    const size_t left_out = fleet.identities + fleet.unreadable + fleet.no_room;
    out.add({{"kind", "source"}},
            static_cast<double>(fleet.members - std::min(left_out, fleet.members)));
    out.add({{"kind", "identity"}}, static_cast<double>(fleet.identities));
    out.add({{"kind", "unreadable"}}, static_cast<double>(fleet.unreadable));
    out.add({{"kind", "no_room"}}, static_cast<double>(fleet.no_room));
}

}  // namespace

void add_risk_metrics(const RiskStanding& standing, Families& out) {
    if (!standing.is_on)
        return;
    // This host's own scores, and where it leads those of the fleet.
    const bool leads = standing.fleet && standing.fleet->leads;
    const auto add = [&](const char* name, const char* help, MetricType type, double host,
                         double fleet) {
        out.begin(name, help, type);
        out.add({{"scope", "host"}}, host);
        if (leads)
            out.add({{"scope", "fleet"}}, fleet);
    };
    const FleetRiskStanding fleet = standing.fleet.value_or(FleetRiskStanding());
    const auto number = [](auto count) { return static_cast<double>(count); };
    add("sluice_risk_stopped", "1 while a cap keeps scores from banning, until risk release",
        MetricType::Gauge, standing.stopped ? 1 : 0, fleet.stopped ? 1 : 0);
    add("sluice_risk_scored", "Sources that have a score, or were banned lately", MetricType::Gauge,
        number(standing.scored), number(fleet.scored));
    add("sluice_risk_waiting", "Sources whose score is enough, and that are not banned yet",
        MetricType::Gauge, number(standing.counts.waiting), number(fleet.counts.waiting));
    add("sluice_risk_bans_total", "Bans that scores led to", MetricType::Counter,
        number(standing.counts.bans), number(fleet.counts.bans));
    add("sluice_risk_spared_total", "Times that somebody who must not be banned was due",
        MetricType::Counter, number(standing.counts.spared), number(fleet.counts.spared));
    add("sluice_risk_forgotten_total", "Scores that there was no room for", MetricType::Counter,
        number(standing.forgotten), number(fleet.forgotten));
    out.one("sluice_risk_verified_sources", "Sources that completed a handshake within an hour",
            MetricType::Gauge, number(standing.verified));
    if (standing.fleet)
        add_set(*standing.fleet, out);
}

}  // namespace sluice
