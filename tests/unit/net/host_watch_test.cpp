#include "net/host_watch.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "temp_folder.h"

namespace sluice {
namespace {

// Gives the loopback of the caller's namespace the address 198.51.100.<last>, or sets it up.
void change_loopback(unsigned long request, uint8_t last) {
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq change{};
    std::strcpy(change.ifr_name, "lo");
    if (request == SIOCSIFADDR) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(0xc633'6400U + last);
        std::memcpy(&change.ifr_addr, &address, sizeof address);
    } else {
        change.ifr_flags = IFF_UP;
    }
    ASSERT_EQ(::ioctl(socket.get(), request, &change), 0) << std::strerror(errno);
}

// In a network namespace of its own, which ends with the thread.
template <class Body>
void in_namespace(Body body) {
    if (::geteuid() != 0)
        GTEST_SKIP() << "needs root for a network namespace";
    std::thread([&] {
        ASSERT_EQ(::unshare(CLONE_NEWNET), 0) << std::strerror(errno);
        body();
    }).join();
}

TEST(HostWatch, HearsOfAddressesAndRoutes) {
    in_namespace([] {
        const TempFolder folder;
        HostWatch watch(folder.path() + "/resolv.conf");
        EXPECT_TRUE(watch.has_changed()) << "nobody looked yet";
        EXPECT_FALSE(watch.has_changed());
        change_loopback(SIOCSIFFLAGS, 0);
        EXPECT_TRUE(watch.has_changed());
        EXPECT_FALSE(watch.has_changed());
        change_loopback(SIOCSIFADDR, 7);
        EXPECT_TRUE(watch.has_changed());
        EXPECT_FALSE(watch.has_changed());
    });
}

TEST(HostWatch, CallsAFloodOfChangesAChange) {
    in_namespace([] {
        const TempFolder folder;
        HostWatch watch(folder.path() + "/resolv.conf");
        change_loopback(SIOCSIFFLAGS, 0);
        watch.has_changed();
        // More than its socket holds.
        for (int i = 0; i < 3'000; ++i)
            change_loopback(SIOCSIFADDR, static_cast<uint8_t>(1 + i % 200));
        EXPECT_TRUE(watch.has_changed());
        EXPECT_FALSE(watch.has_changed());
    });
}

TEST(HostWatch, SeesOtherNameServers) {
    in_namespace([] {
        const TempFolder folder;
        HostWatch watch(folder.path() + "/resolv.conf");
        watch.has_changed();
        const std::string path = folder.write("resolv.conf", "nameserver 192.0.2.53\n");
        EXPECT_TRUE(watch.has_changed());
        EXPECT_FALSE(watch.has_changed());
        folder.write("resolv.conf", "nameserver 192.0.2.54\nnameserver 192.0.2.55\n");
        EXPECT_TRUE(watch.has_changed());
        ASSERT_EQ(::unlink(path.c_str()), 0);
        EXPECT_TRUE(watch.has_changed());
        EXPECT_FALSE(watch.has_changed());
    });
}

TEST(HostWatch, LooksAnewInAnotherNamespace) {
    in_namespace([] {
        const TempFolder folder;
        HostWatch watch(folder.path() + "/resolv.conf");
        watch.has_changed();
        EXPECT_FALSE(watch.has_changed());
        ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
        EXPECT_TRUE(watch.has_changed());
        EXPECT_FALSE(watch.has_changed());
        change_loopback(SIOCSIFFLAGS, 0);
        EXPECT_TRUE(watch.has_changed());
    });
}

}  // namespace
}  // namespace sluice
