// Sluice itself.
#include <algorithm>
#include <sstream>
#include <utility>

#include "contender.h"
#include "gate/source_rules.h"

namespace sluice::bench {

namespace {

using namespace std::chrono_literals;

std::string bucket(const Limit& limit) {
    if (limit.rate == kMoreThanSent)
        return "\"" + std::to_string(limit.rate) + "/s\"";
    return "{ rate = \"" + std::to_string(limit.rate) + (limit.a_minute ? "/m" : "/s") +
           "\", burst = " + std::to_string(limit.burst) + " }";
}

std::string service(const std::string& name, const std::string& match) {
    return "\n[[service]]\nname = \"" + name + "\"\nmatch = [\"" + match + "\"]\n";
}

std::string policy_for(const Setup& setup) {
    const std::string limit = bucket(setup.limit), per_source = "[service.per_source]\n";
    const std::string unreached = "\"" + std::to_string(kMoreThanSent) + "/s\"";
    std::ostringstream out;
    out << "mode = \"enforce\"\n";
    if (setup.limit.rate == 0)
        return out.str();
    for (unsigned i = 1; i < setup.services; i++)
        out << service("other-" + std::to_string(i), "udp/" + std::to_string(kFirstOtherPort + i))
            << per_source << "packets = " << limit << "\n";
    out << service("syn", "tcp/" + std::to_string(setup.port)) << per_source
        << "connections = " << limit << "\n";
    if (setup.tcp)
        return out.str();
    out << service("packets", "udp/" + std::to_string(kLimitedPort)) << per_source
        << "packets = " << limit << "\n";
    out << service("and-bytes", "udp/" + std::to_string(kAndBytesPort)) << per_source
        << "packets = " << limit << "\nbytes = \"20GB/s\"\n";
    out << service("all", "udp/" + std::to_string(kAllLimitsPort)) << per_source
        << "data = " << unreached << "\npackets = " << limit << "\nbytes = \"20GB/s\"\n"
        << "[service.per_prefix]\npackets = " << unreached
        << "\n[service.budget]\npackets = " << unreached << "\n";
    // The least of bytes that there is.
    out << service("bytes", "udp/" + std::to_string(kBytesPort)) << per_source
        << "bytes = { rate = \"1366B/h\", burst = 65550 }\n";
    return out.str();
}

class Gate : public Contender {
  public:
    Gate(Lane lane, MeasuredGate gate) : Contender(std::move(lane)), gate_(std::move(gate)) {}

    [[nodiscard]] bool can(const Setup&) const override { return true; }

    Result<uint64_t> passed() override {
        const Counters counters = read_counters(gate_.tables());
        uint64_t packets = 0;
        for (uint32_t i = 0; i < counters.size(); i++)
            if (counter_kind(i) == CounterKind::passed)
                packets += counters[i].packets;
        return packets;
    }

    Status dump() override {
        SourceRules rules(gate_.tables());
        const auto all = rules.list(RuleKind::ban);
        if (!all)
            return all.error();
        return {};
    }

  protected:
    Status change(const Setup& setup) override {
        std::ranges::fill(gate_.tables().sources.span(), sluice_source_set{});
        if (const std::string policy = policy_for(setup); policy != policy_) {
            if (const auto installed = gate_.install(policy); !installed)
                return installed.error();
            policy_ = policy;
        }
        const std::pair<Family, Bans> bans{setup.family, setup.bans};
        if (bans_ == bans || (bans_.second.count == 0 && setup.bans.count == 0))
            return {};
        std::vector<RuleEntry> entries;
        for (const Prefix& prefix : banned(setup)) {
            RuleEntry entry{.prefix = prefix};
            if (setup.bans.for_a_time)
                entry.ttl = 24h;
            entries.push_back(entry);
        }
        SourceRules rules(gate_.tables());
        const auto replaced = rules.replace_list(kOperatorList, entries, {.reason = "bench"});
        if (!replaced)
            return replaced.error();
        bans_ = bans;
        return {};
    }

  private:
    MeasuredGate gate_;
    std::string policy_;
    std::pair<Family, Bans> bans_{};
};

}  // namespace

MadeContender make_gate(const GateOptions& options) {
    auto lane = Lane::make();
    if (!lane)
        return lane.error();
    auto gate = MeasuredGate::make(options);
    if (!gate)
        return gate.error();
    if (const auto attached = lane->attach(gate->fd()); !attached)
        return attached.error();
    return std::unique_ptr<Contender>(std::make_unique<Gate>(std::move(*lane), std::move(*gate)));
}

}  // namespace sluice::bench
