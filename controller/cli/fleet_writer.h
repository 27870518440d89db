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
    // As write(); an error too where so few replicas have it that a failover may lose it.
    Result<redis::Reply> write_replicated(const redis::Command& command);

    // For what only looks.
    [[nodiscard]] Redis& redis() { return redis_; }
    [[nodiscard]] const std::string& fleet() const { return fleet_; }
    [[nodiscard]] const FeedKeys& keys() const { return keys_; }
    // Seconds until a time of Redis's clock; null where there is no end.
    [[nodiscard]] Json seconds_until(uint64_t expires_ms) const;

  private:
    FleetWriter(Redis redis, std::string fleet)
        : redis_(std::move(redis)), fleet_(std::move(fleet)), keys_(fleet_) {}

    Redis redis_;
    std::string fleet_;
    FeedKeys keys_;
};

}  // namespace sluice::cli
