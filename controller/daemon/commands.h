// What the control socket can be asked: the commands of sluicectl, run here, in the name of whoever
// is at the other end.
#pragma once

#include <chrono>
#include <string>

#include "control/server.h"
#include "daemon/events.h"
#include "daemon/feed_thread.h"
#include "daemon/fleet_thread.h"
#include "daemon/keeper.h"
#include "daemon/policy_thread.h"
#include "daemon/risk_thread.h"
#include "daemon/rl_thread.h"
#include "daemon/tune_watch.h"
#include "feeds/ban_feeds.h"

namespace sluice {

struct CommandContext {
    std::string pin_dir;
    std::string state_dir;
    std::chrono::steady_clock::time_point started;
    Keeper* keeper = nullptr;  // outlives the handler, as the next one
    const EventPump* events = nullptr;
    FleetThread* fleet = nullptr;
    PolicyThread* policy = nullptr;
    const RlThread* rl = nullptr;
    FeedThread* feed = nullptr;
    RiskThread* risk = nullptr;
    const BanFeeds* ban_feeds = nullptr;
    const TuneWatch* tune = nullptr;
};

ControlHandler command_handler(const CommandContext& context);

}  // namespace sluice
