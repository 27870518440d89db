#include "policy/match.h"

#include <netinet/in.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace sluice {

namespace {

using Ports = std::pair<uint16_t, uint16_t>;

constexpr uint8_t kIcmp = IPPROTO_ICMP;
constexpr uint8_t kIcmp6 = IPPROTO_ICMPV6;
constexpr uint8_t kTcp = IPPROTO_TCP;
constexpr uint8_t kUdp = IPPROTO_UDP;

constexpr std::string_view kHint =
    "use a match such as \"tcp/443\", \"tcp/8000-8100\", \"icmp\" or \"203.0.113.10:tcp/443\"";

Error refuse(std::string_view text, std::string_view what, std::string_view hint = kHint) {
    return make_error(ErrorCode::usage, in_quotes(text) + ' ' + std::string(what),
                      std::string(hint));
}

// Decimal digits alone, at most `most`.
std::optional<unsigned> parse_number(std::string_view text, unsigned most) {
    unsigned value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, value);
    if (failure != std::errc{} || stop != end || value > most)
        return std::nullopt;
    return value;
}

std::optional<uint16_t> parse_port(std::string_view text) {
    const auto port = parse_number(text, 65'535);
    if (!port || *port == 0)
        return std::nullopt;
    return static_cast<uint16_t>(*port);
}

std::optional<Ports> parse_ports(std::string_view text) {
    const size_t dash = text.find('-');
    const auto first = parse_port(text.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_port(text.substr(dash + 1));
    if (!first || !last || *first > *last)
        return std::nullopt;
    return Ports{*first, *last};
}

bool has_ports(uint8_t protocol) {
    return protocol == kTcp || protocol == kUdp;
}

// Fills protocol and ports from "tcp/443", "icmp", "proto/132".
Result<Match> parse_protocol(std::string_view whole, std::string_view text) {
    const size_t slash = text.find('/');
    const std::string_view name = text.substr(0, slash);
    const bool has_argument = slash != std::string_view::npos;
    const std::string_view argument = has_argument ? text.substr(slash + 1) : std::string_view{};

    Match match;
    if (name == "icmp" || name == "icmp6") {
        if (has_argument)
            return refuse(whole, "has a port, which ICMP does not know");
        match.protocol = name == "icmp" ? kIcmp : kIcmp6;
        return match;
    }
    if (name == "proto") {
        const auto number = parse_number(argument, 255);
        if (!number)
            return refuse(whole, "has a bad protocol number",
                          "use a number from 0 to 255 such as \"proto/132\"");
        match.protocol = static_cast<uint8_t>(*number);
        if (has_ports(match.protocol))
            return refuse(whole, "has no port", "use \"tcp/1-65535\" or \"udp/1-65535\"");
        return match;
    }
    if (name != "tcp" && name != "udp")
        return refuse(whole, "has an unknown protocol");
    match.protocol = name == "tcp" ? kTcp : kUdp;
    if (!has_argument)
        return refuse(whole, "has no port", "use \"tcp/443\", or \"tcp/1-65535\" for all");
    match.ports = parse_ports(argument);
    if (!match.ports)
        return refuse(whole, "has a bad port",
                      "use a port from 1 to 65535 or a range such as \"tcp/8000-8100\"");
    return match;
}

struct Split {
    std::string_view destination;  // empty: none
    std::string_view protocol;
};

Result<Split> split_destination(std::string_view text) {
    if (text.starts_with('[')) {
        const size_t close = text.find("]:");
        if (close == std::string_view::npos)
            return refuse(text, "has no \"]:\" behind its destination",
                          "use \"[2001:db8::1]:tcp/443\"");
        return Split{text.substr(1, close - 1), text.substr(close + 2)};
    }
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos)
        return Split{{}, text};
    if (text.find(':', colon + 1) != std::string_view::npos)
        return refuse(text, "has more than one colon",
                      "put an IPv6 destination in brackets: \"[2001:db8::1]:tcp/443\"");
    return Split{text.substr(0, colon), text.substr(colon + 1)};
}

uint32_t width(const std::optional<Ports>& ports) {
    return ports ? static_cast<uint32_t>(ports->second - ports->first) : 0;
}

bool overlap(const std::optional<Ports>& a, const std::optional<Ports>& b) {
    return !a || !b || (a->first <= b->second && b->first <= a->second);
}

// No destination and a /0 are equally unspecific; two different /0 share no packet.
bool same_destination(const Match& a, const Match& b) {
    const auto catches_all = [](const Match& m) {
        return !m.destination || m.destination->length() == 0;
    };
    if (!a.destination || !b.destination)
        return catches_all(a) && catches_all(b);
    return *a.destination == *b.destination;
}

}  // namespace

Result<Match> parse_match(std::string_view text, bool* host_bits_cleared) {
    if (host_bits_cleared != nullptr)
        *host_bits_cleared = false;
    const auto split = split_destination(text);
    if (!split)
        return split.error();
    auto match = parse_protocol(text, split->protocol);
    if (!match || split->protocol.size() == text.size())
        return match;

    const auto destination = Prefix::parse(split->destination, host_bits_cleared);
    if (!destination)
        return Error{ErrorCode::usage,
                     "the destination of " + in_quotes(text) + ": " + destination.error().message,
                     destination.error().hint};
    const bool ipv4 = destination->family() == Family::ipv4;
    if (match->protocol == (ipv4 ? kIcmp6 : kIcmp))
        return refuse(text, "can match nothing", "use icmp with IPv4 and icmp6 with IPv6");
    match->destination = *destination;
    return match;
}

std::string format_match(const Match& match) {
    std::string text;
    if (match.destination) {
        const bool ipv4 = match.destination->family() == Family::ipv4;
        text = ipv4 ? match.destination->to_string() + ":"
                    : "[" + match.destination->to_string() + "]:";
    }
    switch (match.protocol) {
        case kIcmp:
            return text + "icmp";
        case kIcmp6:
            return text + "icmp6";
        case kTcp:
            text += "tcp/";
            break;
        case kUdp:
            text += "udp/";
            break;
        default:
            return text + "proto/" + std::to_string(match.protocol);
    }
    if (match.ports) {
        text += std::to_string(match.ports->first);
        if (match.ports->second != match.ports->first)
            text += "-" + std::to_string(match.ports->second);
    }
    return text;
}

bool is_tie(const Match& a, const Match& b) {
    return a.protocol == b.protocol && same_destination(a, b) && width(a.ports) == width(b.ports) &&
           overlap(a.ports, b.ports);
}

}  // namespace sluice
