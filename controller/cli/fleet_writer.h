// What every command with --fleet does: the way to the fleet's Redis, and its audit log there.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/answer.h"
#include "cli/session.h"
#include "fleet/feed_message.h"
#include "redis/redis.h"

namespace sluice::cli {

class FleetWriter {
  public:
    // Of the fleet that the policy in the gate names; an error where it names none.
    static Result<FleetWriter> open(const Tables& tables);

    // Into both audit logs, this host's and the fleet's; then nothing but write() is left to do.
    // Where Redis cannot be reached, nothing is changed.
    Status record(const Session& session, const AuditEntry& entry,
                  std::vector<std::string>& warnings);
    Result<redis::Reply> write(const redis::Command& command);

    [[nodiscard]] const FeedKeys& keys() const { return keys_; }
    // Seconds until a time of Redis's clock; null where there is no end.
    [[nodiscard]] Json seconds_until(uint64_t expires_ms) const;

  private:
    FleetWriter(Redis redis, FeedKeys keys) : redis_(std::move(redis)), keys_(std::move(keys)) {}

    Redis redis_;
    FeedKeys keys_;
};

}  // namespace sluice::cli
