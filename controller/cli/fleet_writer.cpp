#include "cli/fleet_writer.h"

#include <algorithm>

#include "cli/format.h"
#include "fleet/budget_sync.h"
#include "gate/policy_store.h"
#include "observe/timestamp.h"

namespace sluice::cli {

namespace {

// "unreachable" is what the daemon is.
Error away(const Error& error, std::string_view what_of_it) {
    Error told = error.with_context("Redis");
    if (told.code == ErrorCode::unreachable)
        told.code = ErrorCode::failed;
    told.hint = std::string(what_of_it) + (error.hint.empty() ? "" : "; " + error.hint);
    return told;
}

}  // namespace

Result<FleetWriter> FleetWriter::open(const Tables& tables) {
    const auto policy = current_policy(tables);
    if (!policy && policy.error().code != ErrorCode::not_found)
        return policy.error();
    if (!policy || !policy->policy.redis)
        return failed("this host is in no fleet: its policy has no [redis]",
                      "add [redis] url = \"redis://…\" to its configuration; or leave out --fleet");
    auto redis = Redis::open(redis_options(*policy->policy.redis));
    if (!redis)
        return redis.error();
    return FleetWriter(*std::move(redis), policy->policy.fleet.name);
}

Status FleetWriter::record(const Session& session, const AuditEntry& entry,
                           std::vector<std::string>& warnings) {
    session.record(entry, warnings);
    const Operator& who = session.who;
    const redis::Command command =
        feed_audit_command(keys_, {.time = format_timestamp(wall_clock_ns()),
                                   .actor = who.name,
                                   .from = who.from ? who.from->to_string() : "",
                                   .action = entry.action,
                                   .target = entry.target,
                                   .before = entry.before,
                                   .after = entry.after,
                                   .reason = entry.reason});
    const auto reply = redis_.run(command);
    const Status written = reply ? reply->check() : reply.error();
    return written ? Status() : away(written.error(), "nothing was changed");
}

Result<redis::Reply> FleetWriter::write(const redis::Command& command) {
    auto reply = redis_.run(command);
    if (!reply)
        return away(reply.error(), "whether it took effect is not known; to repeat it is harmless");
    if (const Status fine = reply->check(); !fine)
        return away(fine.error(), "nothing was changed");
    return reply;
}

Result<redis::Reply> FleetWriter::write_replicated(const redis::Command& command) {
    auto replies = redis_.run_replicated({&command, 1});
    if (!replies)
        return away(replies.error(),
                    "whether it took effect is not known: sluicectl policy history");
    if (replies->front().error_word() == "NOREPLICAS")
        return failed("Redis: it is done, but too few replicas have it: a failover may lose it",
                      "look with sluicectl policy history");
    if (const Status fine = replies->front().check(); !fine)
        return away(fine.error(), "nothing was changed");
    return std::move(replies->front());
}

Json FleetWriter::seconds_until(uint64_t expires_ms) const {
    if (expires_ms == 0)
        return {};
    const auto now_us =
        static_cast<int64_t>(wall_clock_ns() / 1000) + redis_.health().server_time_offset.count();
    const auto left_us = static_cast<int64_t>(expires_ms) * 1000 - now_us;
    return seconds(std::chrono::microseconds(std::max<int64_t>(left_us, 0)));
}

}  // namespace sluice::cli
