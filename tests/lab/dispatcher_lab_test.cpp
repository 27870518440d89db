// The gate beside other XDP programs, under libxdp's dispatcher.
#include <net/if.h>

#include <cstdlib>
#include <iostream>

#include "gate/program.h"
#include "gate/xdp_link.h"
#include "guarded_edge.h"
#include "neighbour.h"
#include "sockets.h"

namespace sluice::lab {
namespace {

class DispatcherLab : public GuardedEdge {
  protected:
    void SetUp() override {
        if (const auto kernel = probe_kernel(); !kernel || !kernel->dispatcher)
            GTEST_SKIP() << "this kernel refuses extension programs (BPF_PROG_TYPE_EXT)";
        GuardedEdge::SetUp();
        if (IsSkipped() || HasFatalFailure())
            return;
        install("");
        network().in_edge([&] { edge_ = ::if_nametoindex("edge0"); });
        // Discovery of neighbours and routers would be counted at times of its own.
        for (const auto shell : {&Network::edge_shell, &Network::world_shell})
            ASSERT_TRUE((network().*shell)("echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6"));
        sender_ = network().in_world([] { return bind_udp(5000); });
        receiver_ = network().in_edge([] { return bind_udp(80); });
    }
    void TearDown() override {
        // libxdp's pins outlive the interface.
        if (edge_ != 0) {
            (void)leave();
            (void)detach_edge();
        }
        GuardedEdge::TearDown();
    }

    [[nodiscard]] bool join(bool native = true) {
        return network().in_edge([&] { return neighbour_.join(edge_, native); });
    }
    [[nodiscard]] bool leave() {
        return network().in_edge([&] { return neighbour_.leave(); });
    }
    [[nodiscard]] Status detach_edge() {
        return network().in_edge([&] { return detach(tables(), "edge0"); });
    }
    [[nodiscard]] bool runs(uint32_t program_id) {
        return network().in_edge([&] { return dispatcher_has(program_id, edge_); });
    }
    // Exactly one, as the kernel has it.
    [[nodiscard]] Attachment only_attachment() {
        const auto all = network().in_edge([&] { return attachments(tables()).value(); });
        EXPECT_EQ(all.size(), 1U);
        return all.empty() ? Attachment() : all[0];
    }
    void ban_world() {
        SourceRules rules(tables());
        ASSERT_TRUE(rules.ban(Prefix::parse(kWorld4).value(), {}));
    }

    struct Seen {
        uint64_t gate = 0, neighbour = 0, stack = 0;
        bool operator==(const Seen&) const = default;
        friend std::ostream& operator<<(std::ostream& out, const Seen& seen) {
            return out << "gate " << seen.gate << ", neighbour " << seen.neighbour << ", stack "
                       << seen.stack;
        }
    };
    // Who has seen ten datagrams that come now.
    Seen ten_datagrams() {
        const Seen before{.gate = counted_all(), .neighbour = neighbour_.seen()};
        send_datagrams(sender_, kEdge4, 80, 10);
        const uint64_t arrived = take_all(receiver_);
        return {.gate = counted_all() - before.gate,
                .neighbour = neighbour_.seen() - before.neighbour,
                .stack = arrived};
    }

    Neighbour neighbour_;

  private:
    unsigned edge_ = 0;
    UniqueFd sender_, receiver_;
};

constexpr uint64_t kAll = 10;

TEST_F(DispatcherLab, JoinsAnotherProgram) {
    ASSERT_TRUE(join());
    ASSERT_EQ(ten_datagrams(), (DispatcherLab::Seen{0, kAll, kAll}));

    const Attachment attached = attach(XdpMode::automatic);
    EXPECT_TRUE(attached.dispatcher);
    EXPECT_TRUE(attached.native);
    EXPECT_TRUE(attached.warnings.empty());
    EXPECT_TRUE(runs(attached.program_id));
    EXPECT_TRUE(runs(neighbour_.program_id()));
    EXPECT_EQ(ten_datagrams(), (DispatcherLab::Seen{kAll, kAll, kAll}));
    EXPECT_FALSE(only_attachment().lost);

    // The gate stands in front: what it drops, nobody else sees.
    ban_world();
    EXPECT_EQ(ten_datagrams(), (DispatcherLab::Seen{kAll, 0, 0}));

    ASSERT_TRUE(detach_edge());
    EXPECT_FALSE(runs(attached.program_id));
    EXPECT_TRUE(runs(neighbour_.program_id()));
    EXPECT_EQ(ten_datagrams(), (DispatcherLab::Seen{0, kAll, kAll}));
}

// By its interface alone can a dispatcher be found, and that one is not here.
TEST_F(DispatcherLab, IsNotDetachedFromElsewhere) {
    const Attachment attached = attach();
    ASSERT_TRUE(attached.dispatcher);
    const auto all = attachments(tables()).value();
    ASSERT_EQ(all.size(), 1U);
    EXPECT_FALSE(all[0].here);
    EXPECT_FALSE(all[0].lost);
    const Status refused = detach(tables(), "edge0");
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("another network namespace"), std::string::npos)
        << refused.error().message;
    EXPECT_TRUE(runs(attached.program_id));
    ASSERT_TRUE(detach_edge());
    EXPECT_FALSE(runs(attached.program_id));
}

TEST_F(DispatcherLab, IsJoinedByAnotherProgram) {
    const Attachment alone = attach();
    EXPECT_TRUE(alone.dispatcher);
    EXPECT_EQ(ten_datagrams(), (DispatcherLab::Seen{kAll, 0, kAll}));

    ASSERT_TRUE(join());
    EXPECT_EQ(ten_datagrams(), (DispatcherLab::Seen{kAll, kAll, kAll}));
    EXPECT_FALSE(only_attachment().lost);
    EXPECT_EQ(only_attachment().program_id, alone.program_id);

    ASSERT_TRUE(leave());
    EXPECT_EQ(ten_datagrams(), (DispatcherLab::Seen{kAll, 0, kAll}));
    EXPECT_FALSE(only_attachment().lost);
}

// Every packet of a flood is counted exactly once, whatever is replaced meanwhile, and no banned
// one gets through.
TEST_F(DispatcherLab, ReplacesItselfWithoutAGap) {
    ASSERT_TRUE(join());
    attach();
    SourceRules rules(tables());
    ASSERT_TRUE(rules.ban(Prefix::parse("198.18.0.0/16").value(), {}));
    const uint64_t neighbour_before = neighbour_.seen();

    Floods floods(network());
    for (const unsigned cpu : {0U, 1U}) {
        FloodPlan plan = flood_from(cpu == 0 ? "198.18.0.1" : "198.18.0.2", 100s);
        plan.rate = 2000;
        plan.cpu = cpu;
        floods.start(plan);
    }
    std::this_thread::sleep_for(300ms);
    uint32_t program = only_attachment().program_id;
    // Four: the new generation stands in front of the old one and behind it, in turn.
    for (int i = 0; i < 4; i++) {
        const Attachment attached = attach();
        EXPECT_TRUE(attached.dispatcher);
        EXPECT_NE(attached.program_id, program);
        EXPECT_FALSE(runs(program));
        program = attached.program_id;
        install(i % 2 == 0 ? "[[service]]\nname = \"web\"\nmatch = [\"udp/80\"]\n" : "");
    }
    floods.stop();
    EXPECT_EQ(counted(SLUICE_drop_banned) + network().lost_in_queue(), floods.sent());
    EXPECT_EQ(neighbour_.seen(), neighbour_before);
    EXPECT_EQ(network().received().ipv4, 0U);
    EXPECT_GT(floods.sent(), 1000U);
    std::cout << floods.sent() << " packets, " << network().lost_in_queue()
              << " lost before the gate\n";
}

TEST_F(DispatcherLab, TakesTheModeThatIsThere) {
    ASSERT_TRUE(join(false));
    const auto refused = try_attach("edge0", XdpMode::native);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("in generic mode"), std::string::npos)
        << refused.error().message;
    EXPECT_NE(refused.error().hint, "");

    const Attachment attached = attach(XdpMode::automatic);
    EXPECT_TRUE(attached.dispatcher);
    EXPECT_FALSE(attached.native);
    EXPECT_TRUE(attached.warnings.empty());
    EXPECT_EQ(ten_datagrams(), (DispatcherLab::Seen{kAll, kAll, kAll}));
    ASSERT_TRUE(detach_edge());
    EXPECT_EQ(ten_datagrams(), (DispatcherLab::Seen{0, kAll, kAll}));
}

TEST_F(DispatcherLab, NoticesThatItWasTakenOff) {
    ASSERT_TRUE(join());
    attach();
    ASSERT_TRUE(network().edge_shell("ip link set dev edge0 xdpdrv off"));
    EXPECT_TRUE(only_attachment().lost);
    EXPECT_EQ(ten_datagrams(), (DispatcherLab::Seen{0, 0, kAll}));
    EXPECT_TRUE(attach().dispatcher);
    EXPECT_FALSE(only_attachment().lost);
    EXPECT_EQ(ten_datagrams(), (DispatcherLab::Seen{kAll, 0, kAll}));
}

TEST_F(DispatcherLab, IsAloneWhereTheDispatcherIsMissing) {
    ASSERT_EQ(::setenv("LIBXDP_OBJECT_PATH", "/nonexistent", 1), 0);
    const Attachment attached = attach();
    ASSERT_EQ(::unsetenv("LIBXDP_OBJECT_PATH"), 0);
    EXPECT_FALSE(attached.dispatcher);
    EXPECT_TRUE(attached.native);
    EXPECT_EQ(ten_datagrams(), (DispatcherLab::Seen{kAll, 0, kAll}));
    // Replaced as it is there, although a dispatcher is possible by now.
    EXPECT_FALSE(attach().dispatcher);
    EXPECT_FALSE(join());
}

}  // namespace
}  // namespace sluice::lab
