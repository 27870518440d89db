// Frames that are not one packet on the wire: super-packets of generic mode, jumbo frames.
#include <net/if.h>

#include <iostream>

#include "gate/program.h"
#include "gate/xdp_link.h"
#include "guarded_edge.h"
#include "sockets.h"

namespace sluice::lab {
namespace {

constexpr uint64_t kBytes = 50'000'000;

class FrameLab : public GuardedEdge {
  protected:
    // From the world into the edge; the sender's socket, for what it has sent.
    UniqueFd upload(uint64_t bytes) {
        const UniqueFd server = network().in_edge([] { return listen_tcp(443); });
        UniqueFd client = network().in_world([] { return connect_tcp(kEdge4, 443); });
        EXPECT_TRUE(client);
        const UniqueFd served = accept_tcp(server);
        const auto took = transfer(client, served, bytes);
        EXPECT_TRUE(took) << "the transfer stood still";
        if (took)
            std::cout << static_cast<double>(bytes) / took->count() / 1e6 << " MB/s\n";
        return client;
    }

    void install_counting() {
        install(
            "[[service]]\nname = \"web\"\nmatch = [\"tcp/443\", "
            "\"udp/443\"]\n[service.per_source]\n"
            "packets = \"10000000/s\"\n[service.budget]\ndata = \"10000000/s\"\n"
            "packets = \"10000000/s\"\nbytes = \"10GB/s\"\n");
    }
};

TEST_F(FrameLab, GenericModeChargesSegmentsAndBytesOfTheFrame) {
    install_counting();
    const Attachment attachment = attach(XdpMode::generic);
    EXPECT_FALSE(attachment.native);
    const UniqueFd client = upload(kBytes);

    const auto frames = static_cast<double>(counted(SLUICE_pass_within, "web"));
    const auto segments = static_cast<double>(sent(client).segments);
    const auto data = static_cast<double>(demand("web", SLUICE_DATA));
    const auto packets = static_cast<double>(demand("web", SLUICE_PACKETS));
    const auto bytes = static_cast<double>(demand("web", SLUICE_BYTES));
    std::cout << frames << " frames, " << segments << " segments; charged " << packets
              << " packets, " << data << " data, " << bytes << " bytes\n";
    EXPECT_LT(frames, segments / 2) << "no super-packets: nothing is tested";
    EXPECT_NEAR(data / segments, 1, 0.02);
    EXPECT_NEAR(packets / segments, 1, 0.05);  // bare acknowledgements, too
    // Bytes are those of the frame that is there: a super-packet has one header for all its
    // segments.
    const double headers = 14 + 20 + 32;
    const double seen = static_cast<double>(sent(client).bytes) + frames * headers;
    EXPECT_NEAR(bytes / seen, 1, 0.01);
    EXPECT_EQ(counted(SLUICE_drop_malformed), 0U);
}

TEST_F(FrameLab, GenericModeLimitDoesNotStallATransfer) {
    install(
        "[[service]]\nname = \"web\"\nmatch = [\"tcp/443\"]\n[service.per_source]\n"
        "bytes = \"20MB/s\"\n");
    attach(XdpMode::generic);
    upload(40'000'000);
    EXPECT_GT(counted(SLUICE_pass_within, "web"), 0U);
}

TEST_F(FrameLab, JumboFramesInNativeMode) {
    ASSERT_TRUE(network().edge_shell("ip link set edge0 mtu 9000"));
    ASSERT_TRUE(network().world_shell("ip link set world0 mtu 9000"));
    install_counting();
    const Attachment attachment = attach();
    EXPECT_TRUE(attachment.native);

    const UniqueFd receiver = network().in_edge([] { return bind_udp(443); });
    const UniqueFd sender = network().in_world([] { return bind_udp(5000); });
    send_datagrams(sender, kEdge4, 443, 20, 8000);
    EXPECT_EQ(take_all(receiver), 20U);
    EXPECT_EQ(counted(SLUICE_pass_within, "web"), 20U);
    EXPECT_EQ(demand("web", SLUICE_BYTES), 20U * (14 + 20 + 8 + 8000));
    EXPECT_EQ(demand("web", SLUICE_PACKETS), 20U);
    upload(kBytes);
    EXPECT_EQ(counted(SLUICE_drop_malformed), 0U);
}

// As on kernels before 5.18, which know neither frames of several buffers nor the flag for them.
TEST_F(FrameLab, WithoutMultiBufferOnlyFramesOfOnePageAreNative) {
    install_counting();
    KernelFeatures kernel = probe_kernel().value();
    kernel.multi_buffer = false;
    const auto program = Program::load(tables(), kernel, {});
    ASSERT_TRUE(program) << program.error().message;
    const std::string pin = tables().pin_dir + "/link_test";
    const auto attach_it = [&] {
        return network().in_edge(
            [&] { return link_attach(*program, ::if_nametoindex("edge0"), true, pin); });
    };
    ASSERT_TRUE(network().world_shell("ip link set world0 mtu 9000"));
    EXPECT_FALSE(attach_it());
    ASSERT_TRUE(network().world_shell("ip link set world0 mtu 1500"));
    ASSERT_TRUE(attach_it());
    tables().settings().attached[0] = sluice_switch_make(1, 1, 1, SLUICE_ORIGIN_OPERATOR, 0, 0);
    const UniqueFd receiver = network().in_edge([] { return bind_udp(443); });
    const UniqueFd sender = network().in_world([] { return bind_udp(5000); });
    send_datagrams(sender, kEdge4, 443, 20, 1000);
    EXPECT_EQ(take_all(receiver), 20U);
    EXPECT_EQ(demand("web", SLUICE_BYTES), 20U * (14 + 20 + 8 + 1000));
    EXPECT_TRUE(network().in_edge([&] { return link_detach(pin); }));
}

}  // namespace
}  // namespace sluice::lab
