#include "gate_under_test.h"
namespace sluice { namespace {
class Smoke : public GateOfBothFamilies {};
TEST_P(Smoke, A) {
    install_web("[service.per_source]\nconnections = \"1/s\"\n");
    EXPECT_EQ(send(Ethernet().vlan(10) / ip() / tcp(40000, 443).syn()), "pass_within");
    EXPECT_EQ(send(Ethernet().vlan(10) / ip() / tcp(40000, 443).syn()), "drop_source_connections");
    EXPECT_EQ(send(Ethernet().vlan(10) / ip() / tcp(40000, 80).syn()), "pass_unlimited");
}
FOR_BOTH_FAMILIES(Smoke);
} }
