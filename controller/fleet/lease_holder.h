// A host's side of the leases of one shard: what to ask for and when, and what an answer allows.
//
// No I/O and no clock of its own: the owner reads the counters, sends what next() returns, hands
// back the answer or says that there was none, and puts the shares in force. All times are
// monotonic nanoseconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/lease_message.h"
#include "fleet/share.h"
#include "policy/policy.h"

namespace sluice {

// A budget that the fleet shares, as this host's policy has it.
struct SharedBudget {
    FleetBudget budget;
    OnRedisLoss on_loss = OnRedisLoss::hold;
};

struct LeaseOptions {
    LeasePool pool = LeasePool::enforce;
    unsigned max_hosts = 16;  // at least 1; what `safe` divides by
    std::chrono::nanoseconds hold_for = std::chrono::seconds(30);
    std::chrono::nanoseconds period = std::chrono::milliseconds(200);  // leases last 2.5 of them
    uint32_t jitter_seed = 0;                                          // another one on each host
};

// What the packet path has counted.
struct LeaseReading {
    uint64_t demand = 0;  // units asked for since ever, let through or not
    double tokens = 0;    // in the bucket; wanted where tokens are counted
};

enum class LeaseOutcome {
    taken,
    duplicate,  // take another identity, in all shards
    unknown,    // taken, but Redis lacks budgets: unknown_budgets() are to be set there
};

class LeaseHolder {
  public:
    // Calls are numbered from `first_seq` on, which has to be above all that this identity ever
    // used: microseconds of the monotonic clock are, as an identity does not outlive a boot.
    LeaseHolder(std::string host, uint64_t first_seq, LeaseOptions options);

    // The budgets of this shard from now on. Those that stay keep their leases; new ones begin
    // with what holds without Redis, or with what `in_force` says that a predecessor left.
    void set_budgets(const std::vector<SharedBudget>& budgets,
                     const std::map<std::string, Share>& in_force, uint64_t now_ns);
    // To be called before next(), every 20 ms or so, for each budget.
    void observe(std::string_view budget, const LeaseReading& reading, uint64_t now_ns);

    // The call that is due, if one is; nothing while another is unanswered.
    std::optional<LeaseRequest> next(uint64_t now_ns, uint64_t round_cost_us);
    // The answer to it. Whoever asks for acknowledgement by replicas reports a write that too few
    // of them have as lost.
    LeaseOutcome answered(const LeaseReply& reply);
    // There will be no answer; one that comes all the same must not be handed in.
    void lost(uint64_t now_ns);

    // After a duplicate: the same budgets under another name.
    void rename(std::string host, uint64_t first_seq);
    // The machine was asleep: others may have what this host had.
    void lapse();

    // What is to be in force; of a budget that was set.
    [[nodiscard]] const Share& share(std::string_view budget) const;
    // Of the whole fleet, per second, as last heard; of a budget that was set.
    [[nodiscard]] double limit(std::string_view budget) const;
    // Per second, as last reported; of a budget that was set.
    [[nodiscard]] double demand(std::string_view budget) const;
    [[nodiscard]] std::vector<FleetBudget> unknown_budgets() const;
    [[nodiscard]] bool is_learning() const { return learning_; }

  private:
    struct Lease {
        SharedBudget wanted;
        Share share;
        bool tokens = false;  // the share is of counted tokens
        bool saturated = false;
        bool unknown = false;
        bool awaited = false;     // it was lowered, and others wait for the rest
        bool long_lease = false;  // the last one was asked for while idle
        bool unanswered = true;   // in no call that was answered, so it goes with every one
        LeaseReading reading;
        bool is_read = false;
        double demand = 0;
        uint64_t measured_units = 0, measured_ns = 0;  // where the next measure of it begins
        uint64_t pressure_units = 0, pressure_ns = 0;  // the same for what is spent at the moment
        uint64_t busy_ns = 0;                          // when anything was last asked for
        uint64_t idle_due_ns = 0;                      // when an idle one is to be renewed
    };
    struct Outstanding {
        LeaseRequest request;
        uint64_t sent_ns = 0;
        std::vector<Lease*> leases;  // one for each demand
    };

    [[nodiscard]] Allowance without_redis(const Lease& lease) const;
    [[nodiscard]] bool is_idle(const Lease& lease, uint64_t now_ns) const;
    [[nodiscard]] bool rests(const Lease& lease, uint64_t now_ns) const;
    [[nodiscard]] bool is_pressed(const Lease& lease, uint64_t now_ns) const;
    [[nodiscard]] bool is_due(uint64_t now_ns) const;
    void measure(Lease& lease, uint64_t now_ns) const;
    LeaseDemand demand_of(Lease& lease, uint64_t now_ns) const;
    void take(Lease& lease, const LeaseDemand& asked, const LeaseGrant& grant,
              const LeaseReply& reply);
    uint64_t jittered(std::chrono::nanoseconds time);

    std::string host_;
    uint64_t seq_;
    LeaseOptions options_;
    std::minstd_rand random_;
    std::map<std::string, Lease, std::less<>> leases_;
    std::optional<Outstanding> outstanding_;
    uint64_t acked_seq_ = 0, acked_sent_ns_ = 0;
    uint64_t sent_ns_ = 0;   // the last call
    uint64_t renew_ns_ = 0;  // when the next is due, whatever happens
    std::optional<uint64_t> retry_ns_;
    unsigned lost_ = 0;          // calls in a row
    bool acknowledge_ = false;   // something was lowered, which others wait for
    bool acknowledged_ = false;  // the last call was made for that
    bool learning_ = false;
    std::chrono::milliseconds longest_lease_{0};
};

}  // namespace sluice
