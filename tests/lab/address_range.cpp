#include "address_range.h"

#include <charconv>
#include <string>

namespace sluice::lab {
namespace {

constexpr uint32_t kMaxRange = 65'536;

IpAddress nth(const IpAddress& first, const AddressStep& step, uint32_t n) {
    if (first.family() == Family::ipv4)
        return IpAddress::from_ipv4(first.ipv4_host_order() + static_cast<uint32_t>(step.low) * n);
    std::array<uint8_t, 16> bytes{};
    const uint64_t high = first.high64() + step.high * n;
    const uint64_t low = first.low64() + step.low * n;
    for (size_t i = 0; i < 8; i++) {
        bytes[7 - i] = static_cast<uint8_t>(high >> (8 * i));
        bytes[15 - i] = static_cast<uint8_t>(low >> (8 * i));
    }
    return IpAddress::from_bytes(bytes);
}

}  // namespace

Result<AddressStep> address_step(Family family, unsigned prefix) {
    const bool ipv6 = family == Family::ipv6;
    const unsigned bits = ipv6 ? 128 : 32;
    if (prefix == 0)
        prefix = ipv6 ? 64 : 32;
    if (prefix > bits)
        return make_error(ErrorCode::usage, "the source prefix is longer than an address");
    const unsigned host_bits = bits - prefix;
    if (host_bits >= 64)
        return AddressStep{uint64_t{1} << (host_bits - 64), 0};
    return AddressStep{0, uint64_t{1} << host_bits};
}

Result<std::vector<IpAddress>> parse_range(std::string_view text, unsigned prefix) {
    const size_t plus = text.find('+');
    uint32_t count = 1;
    if (plus != std::string_view::npos) {
        const std::string_view digits = text.substr(plus + 1);
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), count);
        if (error != std::errc() || end != digits.data() + digits.size() || count == 0 ||
            count > kMaxRange)
            return make_error(ErrorCode::usage,
                              "'" + std::string(text) + "' is not ADDRESS+N, N up to 65536");
    }
    auto first = IpAddress::parse(text.substr(0, plus));
    if (!first)
        return first.error();
    const auto step = address_step(first->family(), prefix);
    if (!step)
        return step.error();
    std::vector<IpAddress> range;
    for (uint32_t n = 0; n < count; n++)
        range.push_back(nth(*first, *step, n));
    return range;
}

}  // namespace sluice::lab
