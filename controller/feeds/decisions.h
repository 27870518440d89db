// The decisions of CrowdSec as its local API streams them, and what they mean together.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/address.h"

namespace sluice {

// "3h59m48.5s", as the Go language writes durations; negative ones are over. What is beyond 292
// years is as long as that.
Result<std::chrono::nanoseconds> parse_go_duration(std::string_view text);

struct Decision {
    uint64_t id = 0;
    Prefix prefix;
    std::chrono::nanoseconds left{};  // not above zero: it is over
};

struct DecisionStream {
    std::vector<Decision> added{};
    std::vector<uint64_t> deleted{};  // ids
    size_t skipped = 0;               // other types, scopes, or without sense
    std::string skipped_first{};      // why, of the first of them
};

// One answer of /v1/decisions/stream; an error where it is none, or cut short.
Result<DecisionStream> parse_decisions(std::string_view json);

// All decisions that stand. A prefix is banned for as long as any of them says.
class DecisionBook {
  public:
    using Time = std::chrono::steady_clock::time_point;

    struct Ban {
        Prefix prefix;
        Time until;
    };
    struct Change {
        std::vector<Ban> put;      // new ones, and those that last longer or shorter now
        std::vector<Prefix> gone;  // no decision bans them any more
        bool shortens = false;     // some of `put` last shorter
    };

    // What changed at `now`, at which the stream was sent.
    Change apply(const DecisionStream& stream, Time now);
    // What is over; nobody needs to be told.
    void drop_expired(Time now);
    [[nodiscard]] std::vector<Ban> bans() const;
    [[nodiscard]] size_t size() const { return decisions_.size(); }

  private:
    struct Standing {
        Prefix prefix;
        Time until;
    };
    [[nodiscard]] std::optional<Time> until(const Prefix& prefix) const;
    void erase(uint64_t id);

    std::map<uint64_t, Standing> decisions_;
    std::map<Prefix, std::set<std::pair<Time, uint64_t>>> by_prefix_;
};

}  // namespace sluice
