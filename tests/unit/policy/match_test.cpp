#include "policy/match.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

namespace sluice {
namespace {

Match match(std::string_view text) {
    const auto parsed = parse_match(text);
    EXPECT_TRUE(parsed) << parsed.error().message;
    return parsed ? *parsed : Match{};
}

struct Form {
    const char* text;
    const char* destination;  // empty: none
    uint8_t protocol;
    std::optional<std::pair<uint16_t, uint16_t>> ports;
    const char* shown = nullptr;  // where it differs from `text`
};

class Matches : public testing::TestWithParam<Form> {};

TEST_P(Matches, ReadBack) {
    const Form& form = GetParam();
    const auto parsed = parse_match(form.text);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->destination ? parsed->destination->to_string() : "", form.destination);
    EXPECT_EQ(parsed->protocol, form.protocol);
    EXPECT_EQ(parsed->ports, form.ports);
    EXPECT_EQ(format_match(*parsed), form.shown == nullptr ? form.text : form.shown);
    EXPECT_EQ(match(format_match(*parsed)), *parsed);
}

constexpr std::pair<uint16_t, uint16_t> kHttps{443, 443};

INSTANTIATE_TEST_SUITE_P(
    Forms, Matches,
    testing::Values(Form{"tcp/443", "", IPPROTO_TCP, kHttps},
                    Form{"udp/53", "", IPPROTO_UDP, {{53, 53}}},
                    Form{"tcp/8000-8100", "", IPPROTO_TCP, {{8000, 8100}}},
                    Form{"tcp/443-443", "", IPPROTO_TCP, kHttps, "tcp/443"},
                    Form{"udp/1-65535", "", IPPROTO_UDP, {{1, 65535}}},
                    Form{"icmp", "", IPPROTO_ICMP, {}}, Form{"icmp6", "", IPPROTO_ICMPV6, {}},
                    Form{"proto/132", "", IPPROTO_SCTP, {}},
                    Form{"proto/1", "", IPPROTO_ICMP, {}, "icmp"},
                    Form{"203.0.113.10:tcp/8443", "203.0.113.10", IPPROTO_TCP, {{8443, 8443}}},
                    Form{"203.0.113.0/24:tcp/443", "203.0.113.0/24", IPPROTO_TCP, kHttps},
                    Form{"203.0.113.7/24:tcp/443", "203.0.113.0/24", IPPROTO_TCP, kHttps,
                         "203.0.113.0/24:tcp/443"},
                    Form{"203.0.113.10:icmp", "203.0.113.10", IPPROTO_ICMP, {}},
                    Form{"[2001:db8::1]:udp/443", "2001:db8::1", IPPROTO_UDP, kHttps},
                    Form{"[2001:db8::/32]:icmp6", "2001:db8::/32", IPPROTO_ICMPV6, {}},
                    Form{"[::ffff:203.0.113.10]:tcp/443", "203.0.113.10", IPPROTO_TCP, kHttps,
                         "203.0.113.10:tcp/443"}));

struct Refusal {
    const char* text;
    const char* reason;
};

class BadMatches : public testing::TestWithParam<Refusal> {};

TEST_P(BadMatches, AreRefusedWithReasonAndMend) {
    const auto parsed = parse_match(GetParam().text);
    ASSERT_FALSE(parsed) << format_match(*parsed);
    EXPECT_NE(parsed.error().message.find(GetParam().reason), std::string::npos)
        << parsed.error().message;
    EXPECT_NE(parsed.error().message.find('"' + std::string(GetParam().text) + '"'),
              std::string::npos)
        << parsed.error().message;
    EXPECT_FALSE(parsed.error().hint.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Forms, BadMatches,
    testing::Values(
        Refusal{"", "has an unknown protocol"}, Refusal{"sctp/1", "has an unknown protocol"},
        Refusal{"TCP/443", "has an unknown protocol"}, Refusal{"443", "has an unknown protocol"},
        Refusal{"tcp", "has no port"}, Refusal{"proto/6", "has no port"},
        Refusal{"proto/17", "has no port"}, Refusal{"tcp/", "has a bad port"},
        Refusal{"tcp/0", "has a bad port"}, Refusal{"tcp/65536", "has a bad port"},
        Refusal{"tcp/http", "has a bad port"}, Refusal{"tcp/ 443", "has a bad port"},
        Refusal{"tcp/+443", "has a bad port"}, Refusal{"tcp/8100-8000", "has a bad port"},
        Refusal{"tcp/80-", "has a bad port"}, Refusal{"tcp/-80", "has a bad port"},
        Refusal{"tcp/80-90-100", "has a bad port"}, Refusal{"icmp/8", "has a port"},
        Refusal{"proto/256", "has a bad protocol number"},
        Refusal{"proto", "has a bad protocol number"}, Refusal{":tcp/443", "the destination of"},
        Refusal{"203.0.113.256:tcp/443", "the destination of"},
        Refusal{"203.0.113.0/33:tcp/443", "bad prefix length"},
        Refusal{"2001:db8::1:tcp/443", "has more than one colon"},
        Refusal{"[2001:db8::1]tcp/443", "has no \"]:\""},
        Refusal{"[]:tcp/443", "the destination of"},
        Refusal{"203.0.113.10:icmp6", "can match nothing"},
        Refusal{"[2001:db8::1]:icmp", "can match nothing"}));

TEST(Match, SaysWhetherHostBitsWereCleared) {
    bool cleared = false;
    EXPECT_TRUE(parse_match("203.0.113.7/24:tcp/443", &cleared));
    EXPECT_TRUE(cleared);
    EXPECT_TRUE(parse_match("203.0.113.7:tcp/443", &cleared));
    EXPECT_FALSE(cleared);
}

TEST(Tie, IsWhereNeitherMatchIsMoreSpecific) {
    const auto tie = [](std::string_view a, std::string_view b) {
        EXPECT_EQ(is_tie(match(a), match(b)), is_tie(match(b), match(a))) << a << " " << b;
        return is_tie(match(a), match(b));
    };
    EXPECT_TRUE(tie("tcp/443", "tcp/443"));
    EXPECT_TRUE(tie("icmp", "proto/1"));
    EXPECT_TRUE(tie("203.0.113.0/24:tcp/443", "203.0.113.9/24:tcp/443"));
    EXPECT_TRUE(tie("tcp/8000-8100", "tcp/8050-8150")) << "equally narrow and overlapping";
    EXPECT_TRUE(tie("tcp/443", "0.0.0.0/0:tcp/443")) << "equally unspecific";
    EXPECT_TRUE(tie("tcp/443", "[::/0]:tcp/443"));

    EXPECT_FALSE(tie("tcp/443", "udp/443"));
    EXPECT_FALSE(tie("tcp/443", "tcp/444"));
    EXPECT_FALSE(tie("tcp/443", "tcp/400-500")) << "the exact port wins";
    EXPECT_FALSE(tie("tcp/8000-8100", "tcp/8000-8200")) << "the narrower range wins";
    EXPECT_FALSE(tie("tcp/443", "203.0.113.0/24:tcp/443")) << "the destination wins";
    EXPECT_FALSE(tie("203.0.113.0/24:tcp/443", "203.0.113.0/25:tcp/443"));
    EXPECT_FALSE(tie("203.0.113.0/24:tcp/443", "198.51.100.0/24:tcp/443"));
    EXPECT_FALSE(tie("0.0.0.0/0:tcp/443", "[::/0]:tcp/443")) << "no packet is both";
}

}  // namespace
}  // namespace sluice
