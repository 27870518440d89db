// ban, unban, allow and unallow of the whole fleet.
#pragma once

#include "cli/answer.h"
#include "cli/screen.h"
#include "cli/session.h"
#include "fleet/feed_message.h"

namespace sluice::cli {

// What was typed, and what is banned for it: of an IPv6 address its /64.
struct FleetBanOptions {
    FeedBan ban;
    Prefix typed{};
    std::string ttl{};  // as written
    bool force = false;
    bool dry_run = false;
};
// Both within the guards of this host; each other host has its own.
Result<Answer> ban_in_fleet(FleetBanOptions options, const Session& session, Answer answer);
Result<Answer> allow_in_fleet(FleetBanOptions options, const Session& session, Answer answer);
Result<Answer> unban_in_fleet(FeedUnban unban, bool ignore_missing, const Session& session,
                              Answer answer);

}  // namespace sluice::cli
