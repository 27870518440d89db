// A gate whose clock and CPU a test sets: packets in by BPF_PROG_TEST_RUN, verdicts out.
#pragma once

#include <sluice/mode.h>
#include <sluice/verdict.h>

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gate/program.h"
#include "gate/source_rules.h"
#include "gate/switches.h"
#include "packet.h"
#include "test_gate.h"

namespace sluice {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// Of both families, so that one test serves them as a parameter.
struct Addresses {
    std::string_view client;
    std::string_view same_network;  // as the client's wider prefix, another source to the limits
    std::string_view other_network;
    std::string_view server;
    std::string_view other_server;
};
const Addresses& addresses(Family family);
std::string family_name(const ::testing::TestParamInfo<Family>& info);

struct Outcome {
    std::string
        verdict;  // as the counters call it: with "would_" where observe mode let it through
    std::string service;
    bool dropped = false;

    friend bool operator==(const Outcome& outcome, std::string_view verdict) {
        return outcome.verdict == verdict;
    }
    friend std::ostream& operator<<(std::ostream& out, const Outcome& outcome);
};

// Every word of state that limits keep, for comparisons byte by byte.
struct State {
    Bytes sources, windows, budgets, leases;
    friend bool operator==(const State&, const State&) = default;
};

using Counts = std::map<std::string, uint64_t>;  // verdict → packets

class GateUnderTest : public GateTest {
  protected:
    static constexpr uint32_t kDrop = 1;                   // XDP_DROP
    static constexpr uint64_t kStart = 1'000'000'000'000;  // of the clock, ns

    // Tables of the usual size and the program over them, in enforce mode without a policy.
    void SetUp() override;
    void TearDown() override;
    static TableSizes usual_sizes();
    // Anew, with other tables or another largest frame. A program that is loaded already serves
    // again, over emptied tables: to load it is most of a test's time where a kernel is emulated.
    void start(const TableSizes& sizes, uint32_t largest_frame = 1518);

    // From now on plain packets, too, go the general way, or no longer.
    void go_general_way(bool general);

    // The policy from its text, through the reader and the compiler; enforced unless it says
    // otherwise.
    void install(std::string_view toml, const std::optional<nanoseconds>& confirm = {});
    // One service "web" on tcp/443 and udp/443 with these lines; nothing else limited.
    void install_web(std::string_view lines);

    Outcome send(const Packet& packet) { return send(packet.bytes()); }
    Outcome send(const Bytes& frame);
    // Without looking at the counters: for thousands of them.
    bool passes(const Bytes& frame) { return run(frame, 1) != kDrop; }
    // The same packet again and again at one moment; how many passed.
    uint64_t send_many(const Packet& packet, unsigned count) {
        return send_many(packet.bytes(), count);
    }
    uint64_t send_many(const Bytes& frame, unsigned count);

    [[nodiscard]] uint64_t now() const { return tables_->settings().test_now_ns; }
    void advance(nanoseconds time) { tables_->settings().test_now_ns += count(time); }
    void set_clock(uint64_t now_ns) { tables_->settings().test_now_ns = now_ns; }
    void lag(nanoseconds time) {
        tables_->settings().test_lag_ns = static_cast<uint32_t>(count(time));
    }
    void on_cpu(uint32_t cpu) { tables_->settings().test_cpu = cpu; }

    // Of "gate", a service or a rule ("web.per_source.data"); for good or for a time.
    void set_mode(std::string_view target, Mode mode, const std::optional<nanoseconds>& lasts = {});

    void set_mode(sluice_mode mode) { set_mode("gate", static_cast<Mode>(mode)); }

    SourceRules& rules() { return *rules_; }
    void ban(std::string_view prefix, const Ttl& ttl = {}, bool forced = false);
    void allow(std::string_view prefix, bool exempt = false);
    void protect(std::string_view prefix);
    void classify(std::string_view prefix, uint8_t source_class);

    [[nodiscard]] State state() const;
    // Of all CPUs and services; verdicts that were not reached are absent.
    [[nodiscard]] Counts counts() const;
    [[nodiscard]] uint64_t counted(const std::string& verdict) const;
    // A sum over all CPUs.
    [[nodiscard]] uint64_t housekeeping(__u64 sluice_cpu::*member) const;
    [[nodiscard]] uint32_t service_id(std::string_view service) const;

    static uint64_t count(nanoseconds time) { return static_cast<uint64_t>(time.count()); }

  private:
    [[nodiscard]] std::string service_name(uint32_t id) const;
    uint32_t run(const Bytes& frame, unsigned times);

    struct Kept;
    static std::unique_ptr<Kept>& kept();
    void make(const TableSizes& sizes, uint32_t largest_frame);
    [[nodiscard]] bool is_made_for(const TableSizes& sizes, uint32_t largest_frame) const;

    sluice_gate as_made_{};  // the settings of new tables
    uint32_t largest_frame_ = 0;
    std::optional<Program> program_;
    std::optional<Program> general_;  // over the same tables, made when first asked for
    bool goes_general_way_ = false;
    std::optional<SourceRules> rules_;
};

// The same for both families.
class GateOfBothFamilies : public GateUnderTest, public ::testing::WithParamInterface<Family> {
  protected:
    static const Addresses& of() { return addresses(GetParam()); }
    // From the client to the server.
    static Ip ip() { return from(of().client).to(of().server); }
};
#define FOR_BOTH_FAMILIES(suite)                                                         \
    INSTANTIATE_TEST_SUITE_P(Both, suite, ::testing::Values(Family::ipv4, Family::ipv6), \
                             family_name)

// Names of all counters, `would_` twins included, in the order of the counters.
const std::vector<std::string>& counter_names();

}  // namespace sluice
