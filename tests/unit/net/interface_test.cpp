#include "net/interface.h"

#include <gtest/gtest.h>
#include <net/if.h>

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

TEST(Interface, LoopbackIsFoundByName) {
    const auto interface = find_interface("lo");
    ASSERT_TRUE(interface) << interface.error().message;
    EXPECT_EQ(interface->index, if_nametoindex("lo"));
    EXPECT_TRUE(interface->loopback);
    EXPECT_GT(interface->mtu, 1'000U);
    EXPECT_FALSE(interface->master);
    EXPECT_FALSE(interface->bond_slave);
}

TEST(Interface, UnknownNamesListTheKnownOnes) {
    const auto interface = find_interface("no-such-one");
    ASSERT_FALSE(interface);
    EXPECT_EQ(interface.error().code, ErrorCode::not_found);
    EXPECT_NE(interface.error().hint.find(" lo"), std::string::npos);
}

TEST(DefaultRoutes, AreSortedAndNameExistingInterfaces) {
    const auto routes = default_routes();
    ASSERT_TRUE(routes) << routes.error().message;
    EXPECT_TRUE(std::is_sorted(
        routes->begin(), routes->end(), [](const DefaultRoute& a, const DefaultRoute& b) {
            return std::pair(!a.main_table, a.metric) < std::pair(!b.main_table, b.metric);
        }));
    for (const DefaultRoute& route : *routes)
        EXPECT_TRUE(find_interface(route.interface)) << route.interface;
    const auto interface = default_interface();
    EXPECT_EQ(interface.has_value(), !routes->empty());
}

}  // namespace
}  // namespace sluice
