// What the checks make of machines that are folders, and of users who may not look.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "doctor/doctor.h"
#include "machines.h"
#include "temp_folder.h"
#include "tune/journal.h"

namespace sluice {
namespace {

class Examination {
  public:
    explicit Examination(const std::string& machine, const std::string& interface) {
        build_machine(machine, folder_.path());
        patient.machine = Machine::captured(folder_.path()).value();
        patient.options.state_dir = folder_.path() + "/state";
        patient.host = look_at_cpus(patient.machine);
        card.interface.name = interface;
    }

    // A fact of ethtool, as its file has it.
    void know(const std::string& port, const std::string& fact) const {
        std::ofstream(folder_.path() + "/ethtool/" + port, std::ios::app) << fact << '\n';
    }
    void write(const std::string& name, std::string_view text) const { folder_.write(name, text); }
    [[nodiscard]] std::string path() const { return folder_.path(); }

    Finding of_card(std::string_view name) {
        card.tuning = look_at(patient.machine, JournalFolder(patient.options.state_dir),
                              card.interface.name, {});
        const auto checks = card_checks();
        return std::ranges::find(checks, name, &CardCheck::name)->run(patient, card);
    }
    Finding of_host(std::string_view name) const {
        for (const auto checks : {host_checks(), gate_checks(), redis_checks()})
            for (const HostCheck& check : checks)
                if (check.name == name)
                    return check.run(patient);
        ADD_FAILURE() << "no check " << name;
        return {};
    }

    Patient patient;
    Card card;

  private:
    TempFolder folder_;
};

// Somebody else than root, for a while.
class AsNobody {
  public:
    AsNobody() { EXPECT_EQ(::seteuid(65'534), 0); }
    ~AsNobody() { EXPECT_EQ(::seteuid(0), 0); }
    AsNobody(const AsNobody&) = delete;
    AsNobody& operator=(const AsNobody&) = delete;
};

TEST(Spread, IsUnevenOverAsFewAsTwoQueues) {
    Examination examination("irqbalance-runs", "eth0");
    const auto outcome = [&](const std::vector<double>& rates) {
        auto& queues = examination.patient.rates.queues;
        queues.clear();
        for (const double rate : rates)
            queues.push_back({"eth0 rx-" + std::to_string(queues.size()), rate});
        return examination.of_card("spread").outcome;
    };
    EXPECT_EQ(outcome({9'000, 1'000}), Outcome::warn);
    EXPECT_EQ(outcome({6'000, 4'000}), Outcome::pass);
    EXPECT_EQ(outcome({8'000, 1'000, 1'000}), Outcome::warn);
    EXPECT_EQ(outcome({5'000, 2'500, 2'500}), Outcome::pass);
    EXPECT_EQ(outcome({900, 50}), Outcome::skip);
    EXPECT_EQ(outcome({40'000, 1'000, 1'000, 1'000, 1'000, 1'000, 1'000, 1'000}), Outcome::warn);
}

TEST(Ports, AreAllLookedAt) {
    Examination examination("bond-of-two", "bond0");
    EXPECT_EQ(examination.of_card("offloads").outcome, Outcome::pass);
    examination.know("eth1", "feature rx-lro = on");
    const Finding offloads = examination.of_card("offloads");
    EXPECT_EQ(offloads.outcome, Outcome::fail);
    EXPECT_EQ(offloads.seen, "eth1: LRO is on");
    EXPECT_EQ(offloads.mend, "ethtool -K eth1 lro off");

    examination.know("eth1", "rings = rx 512 tx 512");
    examination.know("eth1", "most rings = rx 4096 tx 4096");
    EXPECT_EQ(examination.of_card("rings").outcome, Outcome::pass);
    examination.write("sys/class/net/eth1/statistics/rx_missed_errors", "7\n");
    EXPECT_EQ(examination.of_card("rings").outcome, Outcome::warn);

    examination.know("eth0", "channels = rx 0 tx 0 combined 8");
    EXPECT_EQ(examination.of_card("queues").seen, "eth1: 4 queues for 8 cores near the card");
}

TEST(Hash, HasPortsOfWhatIsServed) {
    Examination examination("irqbalance-runs", "eth0");
    EXPECT_EQ(examination.of_card("hash").outcome, Outcome::pass);
    examination.know("eth0", "udp by port = off");
    EXPECT_EQ(examination.of_card("hash").outcome, Outcome::pass);
    Service dns;
    dns.name = "dns";
    dns.matches.push_back({.destination = {}, .protocol = IPPROTO_UDP, .ports = {{53, 53}}});
    examination.patient.policy = Policy{};
    examination.patient.policy->services.push_back(dns);
    EXPECT_EQ(examination.of_card("hash").mend, "ethtool -N eth0 rx-flow-hash udp4 sdfn");
    examination.know("eth0", "tcp by port = off");
    EXPECT_EQ(examination.of_card("hash").mend, "ethtool -N eth0 rx-flow-hash tcp4 sdfn");
}

TEST(Queues, ThatXdpHoldsAreMendedInTheOrderThatWorks) {
    Examination examination("irqbalance-runs", "eth0");
    examination.know("eth0", "channels = rx 0 tx 0 combined 2");
    examination.know("eth0", "most channels = rx 0 tx 0 combined 4");
    EXPECT_EQ(examination.of_card("queues").mend, "sluicectl tune apply eth0 --confirm 60s");
    examination.know("eth0", "xdp = native");
    EXPECT_EQ(examination.of_card("queues").mend.find("sluicectl detach"), std::string::npos)
        << "somebody else's";
    examination.card.attachment = Attachment{.interface = "eth0"};
    const Finding found = examination.of_card("queues");
    EXPECT_EQ(found.outcome, Outcome::warn);
    EXPECT_EQ(found.mend,
              "sluicectl detach eth0 && sluicectl tune apply eth0 && sluicectl attach eth0");
}

// A digit a bit, as the kernel shows what was agreed upon.
std::string virtio_bits(std::initializer_list<VirtioFeature> features) {
    std::string bits(64, '0');
    for (const VirtioFeature feature : features)
        bits[static_cast<size_t>(feature)] = '1';
    return bits + '\n';
}

TEST(Offloads, OfVirtioAreTroubleWhereNobodyCanSwitchThemOff) {
    using enum VirtioFeature;
    Examination examination("virtio-one-queue", "eth0");
    examination.know("eth0", "feature rx-gro-hw = on");
    const std::string file = "sys/class/net/eth0/device/features";
    examination.write(file, virtio_bits({guest_checksum, switched_offloads, guest_tso4}));
    EXPECT_EQ(examination.of_card("offloads").outcome, Outcome::pass);
    examination.write(file, virtio_bits({guest_tso4, guest_tso6}));
    const Finding found = examination.of_card("offloads");
    EXPECT_EQ(found.outcome, Outcome::fail);
    EXPECT_NE(found.mend.find("ctrl_guest_offloads=on"), std::string::npos) << found.mend;
    examination.write(file, virtio_bits({queue_coalescing}));
    EXPECT_EQ(examination.of_card("offloads").outcome, Outcome::pass);
}

TEST(Driver, SaysWhatItRefusesBeforeItDoes) {
    Examination ena("ena-eight-of-eight", "ens5");
    EXPECT_EQ(ena.of_card("driver").mend, "sluicectl tune apply ens5");
    ena.know("ens5", "channels = rx 0 tx 0 combined 4");
    EXPECT_EQ(ena.of_card("driver").outcome, Outcome::pass);
    Examination ixgbe("ixgbe-smt", "eth0");
    EXPECT_EQ(ixgbe.of_card("driver").outcome, Outcome::pass);
    ixgbe.write("sys/class/net/eth0/device/sriov_numvfs", "4\n");
    EXPECT_EQ(ixgbe.of_card("driver").mend, "echo 0 > /sys/class/net/eth0/device/sriov_numvfs");
}

TEST(Lockdown, IsNoTroubleWhereTheGateRuns) {
    Examination examination("veth", "edge0");
    examination.write("sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
    EXPECT_EQ(examination.of_host("lockdown").outcome, Outcome::warn);
    examination.patient.attachments.push_back({.interface = "edge0"});
    EXPECT_EQ(examination.of_host("lockdown").outcome, Outcome::pass);
    examination.patient.attachments.front().lost = true;
    EXPECT_EQ(examination.of_host("lockdown").outcome, Outcome::warn);
}

TEST(Unprivileged, IsSkippedWhereOthersCannotBeSeen) {
    if (::geteuid() != 0)
        GTEST_SKIP() << "needs root, to be somebody else";
    Examination examination("irqbalance-runs", "eth0");
    EXPECT_EQ(examination.of_host("irqbalance").outcome, Outcome::pass) << "nothing is tuned";
    EXPECT_EQ(examination.of_card("tuning").outcome, Outcome::pass);
    ASSERT_EQ(::chmod(examination.path().c_str(), 0700), 0);
    const AsNobody nobody;
    for (const Finding& finding : {examination.of_host("irqbalance"), [&] {
                                       const auto checks = card_checks();
                                       return std::ranges::find(checks, "tuning", &CardCheck::name)
                                           ->run(examination.patient, examination.card);
                                   }()}) {
        EXPECT_EQ(finding.outcome, Outcome::skip) << finding.seen;
        EXPECT_NE(finding.mend.find("sudo sluicectl doctor"), std::string::npos) << finding.mend;
    }
}

TEST(Jit, IsForRootToSee) {
    if (::geteuid() != 0)
        GTEST_SKIP() << "needs root, to be somebody else";
    Examination examination("veth", "edge0");
    examination.patient.options.interfaces = {"edge0"};
    EXPECT_NE(examination.of_host("jit").mend.find("namespaces"), std::string::npos);
    const std::string file = "proc/sys/net/core/bpf_jit_enable";
    examination.write(file, "1\n");
    EXPECT_EQ(examination.of_host("jit").outcome, Outcome::pass);
    for (const char* part : {"", "/proc", "/proc/sys", "/proc/sys/net", "/proc/sys/net/core"})
        ASSERT_EQ(::chmod((examination.path() + part).c_str(), 0755), 0);
    ASSERT_EQ(::chmod((examination.path() + '/' + file).c_str(), 0600), 0);
    const AsNobody nobody;
    EXPECT_EQ(examination.of_host("jit").mend, "sudo sluicectl doctor edge0");
}

TEST(Unprivileged, IsToldTheCommandWithTheInterface) {
    Examination examination("veth", "edge0");
    examination.patient.options.interfaces = {"edge0"};
    examination.patient.options.config = "/etc/sluice/sluice.toml";
    examination.patient.gate = make_error(ErrorCode::not_permitted, "open /sys/fs/bpf/sluice");
    for (const char* name :
         {"config", "gate", "lockout", "services", "review", "lists", "bans", "tables"}) {
        const Finding found = examination.of_host(name);
        EXPECT_EQ(found.outcome, Outcome::skip) << name;
        EXPECT_EQ(found.mend, "sudo sluicectl doctor edge0") << name;
    }
    const Finding mode = examination.of_card("xdp-mode");
    EXPECT_EQ(mode.outcome, Outcome::skip);
    EXPECT_EQ(mode.mend, "sudo sluicectl doctor edge0");
    EXPECT_NE(mode.seen.find("only root may read"), std::string::npos) << mode.seen;
    examination.patient.gate = make_error(ErrorCode::unreachable, "no gate");
    EXPECT_EQ(examination.of_card("xdp-mode").mend, "sluicectl attach edge0");
}

TEST(Config, IsSkippedWhereItMayNotBeRead) {
    Examination examination("veth", "edge0");
    examination.patient.options.config = "/etc/sluice/sluice.toml";
    examination.patient.gate = make_error(ErrorCode::unreachable, "no gate");
    EXPECT_EQ(examination.of_host("config").outcome, Outcome::warn) << "there is none";
    examination.patient.config_error = make_error(ErrorCode::not_permitted, "open x");
    EXPECT_EQ(examination.of_host("config").outcome, Outcome::skip);
    examination.patient.config_error = failed("line 3: nonsense");
    EXPECT_EQ(examination.of_host("config").outcome, Outcome::fail);
    examination.patient.config_error.reset();
    examination.patient.gate = make_error(ErrorCode::not_permitted, "open the gate");
    EXPECT_EQ(examination.of_host("config").outcome, Outcome::skip) << "it may have a policy";
}

TEST(Config, OfAFileThatIsWrongIsTold) {
    Examination examination("veth", "edge0");
    examination.patient.policy = Policy{};
    EXPECT_EQ(examination.of_host("config").outcome, Outcome::pass);
    examination.patient.config_error = failed("sluice.toml:36: nonsense");
    const Finding found = examination.of_host("config");
    EXPECT_EQ(found.outcome, Outcome::fail) << "whatever is in force by now";
    EXPECT_NE(found.why.find("reload"), std::string::npos) << found.why;
}

TEST(Services, WithoutAnyLimitAreTold) {
    Examination examination("veth", "edge0");
    examination.patient.policy = Policy{};
    examination.patient.policy->services.resize(1);
    const Finding found = examination.of_host("services");
    EXPECT_EQ(found.outcome, Outcome::warn);
    EXPECT_EQ(found.seen, "no service has a limit");
}

TEST(RedisRole, IsThatOfAMaster) {
    Examination examination("veth", "edge0");
    examination.patient.policy = Policy{};
    examination.patient.policy->redis = RedisSettings();
    examination.patient.policy->redis->url = "redis://192.0.2.1";
    examination.patient.redis = RedisLook{};
    examination.patient.redis->info = {{"role", "master"}};
    EXPECT_EQ(examination.of_host("redis-role").outcome, Outcome::pass);
    examination.patient.redis->info = {{"role", "slave"}};
    EXPECT_EQ(examination.of_host("redis-role").outcome, Outcome::fail);
}

TEST(Lists, AreSkippedWithoutAGate) {
    const Examination examination("veth", "edge0");
    EXPECT_EQ(examination.of_host("lists").outcome, Outcome::skip);
}

}  // namespace
}  // namespace sluice
