// Attaching: refusals with their reasons, replacement, and what is left afterwards.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "gate/xdp_link.h"
#include "guarded_edge.h"

namespace sluice::lab {
namespace {

class AttachmentLab : public GuardedEdge {
  protected:
    void SetUp() override {
        GuardedEdge::SetUp();
        if (!IsSkipped() && !HasFatalFailure())
            install("");
    }
    bool runs(uint32_t program_id) {
        return running() == program_id || network().in_edge([&] {
            return dispatcher_has(program_id, ::if_nametoindex("edge0"));
        });
    }
    uint32_t running() {
        return network().in_edge([] {
            const auto state = xdp_state(::if_nametoindex("edge0"));
            return state ? state->any_id() : 0;
        });
    }
    void expect_refused(const std::string& interface, const std::string& reason) {
        const auto attached = try_attach(interface, XdpMode::automatic);
        ASSERT_FALSE(attached) << interface;
        EXPECT_NE(attached.error().message.find(reason), std::string::npos)
            << attached.error().message;
        EXPECT_NE(attached.error().hint, "") << attached.error().message;
    }
    [[nodiscard]] std::vector<Attachment> all() {
        return network().in_edge([&] { return attachments(tables()).value(); });
    }
    [[nodiscard]] Status detach_edge() {
        return network().in_edge([&] { return detach(tables(), "edge0"); });
    }
};

TEST_F(AttachmentLab, RefusesWhatCannotWork) {
    expect_refused("nosuch0", "nosuch0");
    ASSERT_TRUE(network().edge_shell("ip link set edge0 down"));
    expect_refused("edge0", "is down");
    ASSERT_TRUE(network().edge_shell("ip link set edge0 up"));
    EXPECT_EQ(running(), 0U);
    EXPECT_TRUE(all().empty());
}

TEST_F(AttachmentLab, NamesTheProgramInTheWay) {
    const bpf_insn pass[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K,
         .dst_reg = 0,
         .src_reg = 0,
         .off = 0,
         .imm = XDP_PASS},
        {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
    const UniqueFd foreign(
        bpf_prog_load(BPF_PROG_TYPE_XDP, "somebody_elses", "GPL", pass, std::size(pass), nullptr));
    ASSERT_TRUE(foreign);
    network().in_edge([&] {
        ASSERT_EQ(bpf_xdp_attach(static_cast<int>(::if_nametoindex("edge0")), foreign.get(),
                                 XDP_FLAGS_DRV_MODE, nullptr),
                  0);
    });
    const uint32_t before = running();
    expect_refused("edge0", "somebody_elses");
    EXPECT_EQ(running(), before);
}

TEST_F(AttachmentLab, ReplacesItselfAndLeavesNothing) {
    const Attachment first = attach();
    EXPECT_TRUE(runs(first.program_id));
    const Attachment second = attach();
    EXPECT_NE(second.program_id, first.program_id);
    EXPECT_EQ(second.slot, first.slot);
    EXPECT_TRUE(runs(second.program_id));
    EXPECT_FALSE(runs(first.program_id));
    EXPECT_EQ(all().size(), 1U);

    if (!second.dispatcher) {
        EXPECT_FALSE(network().edge_shell("ip link set dev edge0 xdp off 2>/dev/null"))
            << "others can take the gate off";
    }
    EXPECT_FALSE(all().at(0).lost);

    ASSERT_TRUE(detach_edge());
    EXPECT_EQ(running(), 0U);
    EXPECT_TRUE(all().empty());
    EXPECT_FALSE(std::filesystem::exists(tables().pin_dir + "/link_0"));
    EXPECT_FALSE(detach_edge());
}

TEST_F(AttachmentLab, RefusesToChargeTwice) {
    ASSERT_TRUE(network().edge_shell(
        "ip link add link edge0 name upper0 type macvlan && ip link set upper0 up"));
    attach();
    expect_refused("upper0", "charged twice");
    ASSERT_TRUE(detach_edge());
    ASSERT_TRUE(try_attach("upper0", XdpMode::generic));
    expect_refused("edge0", "charged twice");
}

TEST_F(AttachmentLab, RefusesABondAndItsPort) {
    if (!network().edge_shell("ip link add bond0 type bond 2>/dev/null"))
        GTEST_SKIP() << "this kernel has no bonding";
    ASSERT_TRUE(network().edge_shell(
        "ip link set edge0 down && ip link set edge0 master bond0 && ip link set bond0 up && "
        "ip link set edge0 up"));
    attach();
    expect_refused("bond0", "charged twice");
}

TEST_F(AttachmentLab, GoesOnWithoutWhoAttachedIt) {
    install(
        "[[service]]\nname = \"web\"\nmatch = [\"udp/80\"]\n[service.per_source]\ndata = "
        "\"5/s\"\n");
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const auto attached = try_attach("edge0");
        if (attached)
            ::raise(SIGKILL);
        ::_exit(1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "could not attach";

    Floods floods(network());
    floods.start(flood_from("198.18.0.1", 1s));
    floods.wait();
    EXPECT_LE(network().received().ipv4, 12U);
    EXPECT_GT(counted(SLUICE_drop_source_data), 100'000U);
    ASSERT_EQ(all().size(), 1U);
    EXPECT_FALSE(all().at(0).lost);
    EXPECT_TRUE(detach_edge());
    EXPECT_EQ(running(), 0U);
}

}  // namespace
}  // namespace sluice::lab
