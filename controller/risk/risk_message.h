// What a fleet's hosts write down about risk in Redis, and how they read it.
//
// All keys lie in one slot of a cluster:
//   sluice:{F:risk}:leader    "HOST TOKEN", while somebody leads
//   …:token                   the last leader's token
//   …:score                   hash: source -> score, as of the leader's last pass
//   …:score:TOKEN             the one that this leader is writing
//   …:state                   what the leader has banned lately, and why it stopped
//   …:wanted                  sources that are due, and that no gate has been known to see
//   …:seen                    sorted set: of them, source -> when a gate had seen it (ms)
//   …:orders                  list: what operators want of the leader
//   …:verified:N              sources that were verified in the hour N since 1970: a HyperLogLog
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "redis/command.h"
#include "redis/reply.h"
#include "risk/ban_allowance.h"
#include "risk/score_book.h"

namespace sluice {

struct RiskKeys {
    explicit RiskKeys(std::string_view fleet);
    [[nodiscard]] std::string new_score(uint64_t token) const;
    [[nodiscard]] std::string verified(uint64_t now_ms, unsigned hours_ago = 0) const;

    std::string base;
    std::string score, state, wanted, seen, orders;
};

// Where a set is kept while it is read away: in the slot of the set.
std::string drained_key(std::string_view zset);

// --- who leads -----------------------------------------------------------------------------------

redis::Command risk_lead_command(const RiskKeys& keys, std::string_view host,
                                 std::chrono::milliseconds time, bool wants);
struct RiskLead {
    bool is_mine = false;
    std::string leader;  // empty: nobody
    uint64_t token = 0;
    uint64_t now_ms = 0;  // Redis's clock, since 1970
};
Result<RiskLead> parse_risk_lead(const redis::Reply& reply);

// From now on no leader with a lower token bans. `bans`: FeedKeys::base.
redis::Command risk_fence_command(std::string_view bans, uint64_t token);
// Puts the new scores in the place of the old ones, where that leader still leads.
redis::Command risk_commit_command(const RiskKeys& keys, std::string_view host, uint64_t token);

// --- what it leaves ------------------------------------------------------------------------------

std::string format_checkpoint(const SourceScore& score);
// Nothing where it makes no sense.
std::optional<ScoreBook::Entry> parse_checkpoint(std::string_view source, std::string_view text);

struct RiskState {
    std::vector<uint64_t> recent;  // bans, as of BanAllowance
    std::optional<BanAllowance::Stop> stopped;
};
std::string format_state(const BanAllowance& allowance);
RiskState parse_state(std::string_view text);

// One a line.
std::string format_sources(const std::vector<Prefix>& sources);
std::vector<Prefix> parse_sources(std::string_view text, size_t most);

// --- orders --------------------------------------------------------------------------------------

struct RiskOrder {
    enum class Kind { clear, release, forget_due } kind = Kind::release;
    Prefix source{};  // of clear

    [[nodiscard]] std::string format() const;
};
std::optional<RiskOrder> parse_order(std::string_view text);

}  // namespace sluice
