#include "cli/prefix_argument.h"

namespace sluice::cli {

namespace {

constexpr unsigned kBannedIpv6Length = 64;

// "192.0.2.1:443", "[2001:db8::1]:443", "2001:db8::1:58340": the last one cannot be told for sure.
bool may_have_port(const std::string& text) {
    return text.find('/') == std::string::npos &&
           (text.find(':') != std::string::npos || text.starts_with('['));
}

}  // namespace

Result<PrefixArgument> parse_prefix(const std::string& text, std::vector<std::string>& warnings) {
    bool host_bits_cleared = false;
    const auto prefix = Prefix::parse(text, &host_bits_cleared);
    if (!prefix) {
        Error error = prefix.error();
        error.code = ErrorCode::usage;
        if (error.hint.empty() || may_have_port(text))
            error.hint = may_have_port(text)
                             ? "give the address alone, without port or brackets"
                             : "use an address or a prefix: 192.0.2.1, 192.0.2.0/24, 2001:db8::/48";
        return error;
    }
    if (host_bits_cleared)
        warnings.push_back(text + " has host bits set; taken as " + prefix->to_string());
    return PrefixArgument{*prefix, text.find('/') == std::string::npos};
}

Result<PrefixArgument> parse_banned(const std::string& text, std::vector<std::string>& warnings) {
    auto argument = parse_prefix(text, warnings);
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
