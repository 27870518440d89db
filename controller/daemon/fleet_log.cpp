#include "daemon/fleet_log.h"

#include "base/log.h"

namespace sluice {

void FleetLog::tell_error(const std::string& error) {
    if (error != error_ && !error.empty())
        log(LogLevel::warning, what_ + ": " + error);
    else if (error != error_)
        log(LogLevel::info, what_ + ": Redis answers again");
    error_ = error;
}

void FleetLog::tell(const FeedStanding& standing) {
    tell_error(standing.error);
    if (standing.lost > lost_)
        log(LogLevel::error,
            "Redis has lost " + std::to_string(standing.lost) +
                " bans, allows or switches of the fleet that nobody took back. They hold. If it is "
                "right that they have gone: sluicectl sync --accept-shrink");
    if (standing.refused > refused_)
        log(LogLevel::warning, "a ban of the fleet is not for this host: " + standing.refusal);
    lost_ = standing.lost;
    refused_ = standing.refused;
}

void FleetLog::tell(const FleetStanding& standing) {
    tell_error(standing.error);
    if (standing.duplicates > duplicates_)
        log(LogLevel::error,
            "another host had this one's identity, which is a new one now: was a gate copied?");
    duplicates_ = standing.duplicates;
}

void FleetLog::tell(const PolicyStanding& standing) {
    tell_error(standing.error);
    const std::string stays = "version " + std::to_string(standing.applied) +
                              " stays in force here. To give it back: sluicectl policy push FILE";
    if (standing.is_lost && !is_lost_)
        log(LogLevel::error, "Redis has lost the fleet's policy; " + stays);
    if (standing.is_older && !is_older_)
        log(LogLevel::error,
            "Redis has an older state of the fleet's policy than this host, as of a backup; " +
                stays);
    if (standing.refused != 0 && standing.refusal != refusal_)
        log(LogLevel::error,
            "version " + std::to_string(standing.refused) +
                " of the fleet's policy is not in force here: " + standing.refusal);
    if (!standing.unsaved.empty() && standing.unsaved != unsaved_)
        log(LogLevel::error, "the fleet's policy would not outlive a reboot: " + standing.unsaved);
    is_lost_ = standing.is_lost;
    is_older_ = standing.is_older;
    refusal_ = standing.refusal;
    unsaved_ = standing.unsaved;
}

void FleetLog::tell(const RlStanding& standing) {
    tell_error(standing.error);
    std::set<std::string> refusals;
    for (const RlService& service : standing.services)
        for (const RlRoute& route : service.routes)
            if (!route.error.empty())
                refusals.insert("what was good last stays: " + route.error);
    if (!standing.whitelist_error.empty())
        refusals.insert("the whitelist stays as it was: " + standing.whitelist_error);
    if (!standing.unsaved.empty())
        refusals.insert("what is known of rl: would not outlive a restart: " + standing.unsaved);
    for (const std::string& refusal : refusals)
        if (!refusals_.contains(refusal))
            log(LogLevel::error, refusal);
    refusals_ = std::move(refusals);
}

void FleetLog::tell(const RiskStanding& standing) {
    if (standing.fleet)
        tell_error(standing.fleet->error);
    if (standing.error != refusal_ && !standing.error.empty())
        log(LogLevel::error, "risk: a ban waits: " + standing.error);
    refusal_ = standing.error;
    const std::string stop = standing.stop_reason();
    if (stop != stop_ && !stop.empty())
        log(LogLevel::error, "risk: no more bans: " + stop +
                                 ". Look whether they were right: sluicectl risk; to go on: "
                                 "sluicectl risk release");
    stop_ = stop;
    const bool leads = standing.fleet && standing.fleet->leads;
    if (leads != leads_)
        log(LogLevel::info, leads ? "risk: this host leads" : "risk: another host may lead");
    leads_ = leads;
}

}  // namespace sluice
