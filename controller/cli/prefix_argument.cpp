#include "cli/prefix_argument.h"

#include <algorithm>
#include <array>

namespace sluice::cli {

namespace {

constexpr unsigned kBannedIpv6Length = 64;

// "This network", multicast, reserved and broadcast: only malformed packets come from there.
bool is_no_source(const Prefix& prefix) {
    constexpr std::array<const char*, 4> kNever = {"0.0.0.0/8", "224.0.0.0/3", "ff00::/8", "::"};
    return std::any_of(kNever.begin(), kNever.end(), [&prefix](const char* never) {
        return Prefix::parse(never).value().contains(prefix);
    });
}

}  // namespace

Result<PrefixArgument> parse_prefix(const std::string& text, std::vector<std::string>& warnings) {
    bool host_bits_cleared = false;
    const auto prefix = Prefix::parse(text, &host_bits_cleared);
    if (!prefix) {
        Error error = prefix.error();
        error.code = ErrorCode::usage;
        return error;
    }
    if (host_bits_cleared)
        warnings.push_back(text + " has host bits set; taken as " + prefix->to_string());
    return PrefixArgument{*prefix, text.find('/') == std::string::npos};
}

Result<PrefixArgument> parse_banned(const std::string& text, std::vector<std::string>& warnings) {
    auto argument = parse_prefix(text, warnings);
    if (argument && is_no_source(argument->prefix))
        warnings.push_back("no host sends from " + argument->prefix.to_string() +
                           ": it is an address to send to, or none");
    if (!argument || !argument->bare_address || argument->prefix.family() == Family::ipv4)
        return argument;
    auto wider = Prefix::make(argument->prefix.address(), kBannedIpv6Length);
    if (!wider)
        return wider.error();
    warnings.push_back("taken as " + wider->to_string() +
                       ", which one IPv6 host usually has; for " +
                       "the address alone: " + argument->prefix.to_string() + "/128");
    return PrefixArgument{*wider, true};
}

}  // namespace sluice::cli
