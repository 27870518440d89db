#include "net/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/text.h"

namespace sluice {

namespace {

constexpr std::array<uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr unsigned kMappedBits = 96;
constexpr unsigned kIpv4Bits = 32;
constexpr unsigned kIpv6Bits = 128;

constexpr unsigned family_bits(Family family) {
    return family == Family::ipv4 ? kIpv4Bits : kIpv6Bits;
}

// The same length counted in the 16-byte form.
unsigned length_in_bytes_form(Family family, unsigned length) {
    return family == Family::ipv4 ? kMappedBits + length : length;
}

uint64_t big_endian(const uint8_t* bytes, size_t count) {
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i)
        value = value << 8 | bytes[i];
    return value;
}

IpAddress without_host_bits(const IpAddress& address, unsigned length) {
    auto bytes = address.bytes();
    const unsigned kept = length_in_bytes_form(address.family(), length);
    for (unsigned i = 0; i < bytes.size(); ++i) {
        const unsigned kept_here = std::clamp(kept, 8 * i, 8 * i + 8) - 8 * i;
        bytes[i] = static_cast<uint8_t>(bytes[i] & (0xff00U >> kept_here));
    }
    return IpAddress::from_bytes(bytes);
}

Error refuse(std::string_view text, std::string_view what, std::string hint) {
    return make_error(ErrorCode::usage, in_quotes(text) + ' ' + std::string(what), std::move(hint));
}

struct Flaw {
    std::string_view what;
    const char* mend;
};

// What somebody who typed `text` where an address belongs most likely meant.
Flaw flaw_of(std::string_view text, bool prefix_wanted) {
    constexpr const char* kAlone = "give the address alone, without port or brackets";
    const size_t colon = text.find(':');
    const bool one_colon = colon != std::string_view::npos && colon == text.rfind(':');
    if (text.find('%') != std::string_view::npos)
        return {"has a zone, which means nothing outside this host",
                "leave out the % and the rest"};
    if (text.find('[') != std::string_view::npos)
        return {"has brackets", kAlone};
    if (one_colon && IpAddress::parse(text.substr(0, colon)))
        return {"has a port", kAlone};
    if (text.find('/') != std::string_view::npos)
        return {"is a prefix, not an address", "give one address of it"};
    if (prefix_wanted)
        return {"is not an IP address or prefix",
                "use one such as 192.0.2.1, 192.0.2.0/24 or 2001:db8::/32"};
    return {"is not an IP address", "use an address such as 192.0.2.1 or 2001:db8::1"};
}

// One to three digits, without sign, blanks or leading zeros.
std::optional<unsigned> parse_length(std::string_view text) {
    constexpr size_t kMaxDigits = 3;
    const bool leading_zero = text.size() > 1 && text.front() == '0';
    if (text.empty() || text.size() > kMaxDigits || leading_zero)
        return std::nullopt;
    unsigned length = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), length);
    if (failure != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return length;
}

bool has_colon(std::string_view text) {
    return text.find(':') != std::string_view::npos;
}

}  // namespace

IpAddress IpAddress::from_bytes(const std::array<uint8_t, 16>& bytes) {
    IpAddress address;
    address.bytes_ = bytes;
    return address;
}

IpAddress IpAddress::from_ipv4(uint32_t host_order) {
    IpAddress address;
    std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), address.bytes_.begin());
    for (unsigned i = 0; i < 4; ++i)
        address.bytes_[kMappedPrefix.size() + i] = static_cast<uint8_t>(host_order >> (24 - 8 * i));
    return address;
}

Result<IpAddress> IpAddress::parse(std::string_view text) {
    // inet_pton would stop at a NUL and call the rest of the text valid.
    if (text.find('\0') != std::string_view::npos)
        return refuse(text.substr(0, text.find('\0')), "goes on behind a NUL",
                      "use an address such as 192.0.2.1 or 2001:db8::1");
    const std::string terminated(text);
    if (has_colon(text)) {
        std::array<uint8_t, 16> bytes{};
        if (inet_pton(AF_INET6, terminated.c_str(), bytes.data()) == 1)
            return from_bytes(bytes);
    } else {
        in_addr ipv4{};
        if (inet_pton(AF_INET, terminated.c_str(), &ipv4) == 1)
            return from_ipv4(ntohl(ipv4.s_addr));
    }
    const Flaw flaw = flaw_of(text, false);
    return refuse(text, flaw.what, flaw.mend);
}

Family IpAddress::family() const {
    return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), bytes_.begin()) ? Family::ipv4
                                                                                  : Family::ipv6;
}

uint32_t IpAddress::ipv4_host_order() const {
    return static_cast<uint32_t>(big_endian(bytes_.data() + kMappedPrefix.size(), 4));
}

uint64_t IpAddress::high64() const {
    return big_endian(bytes_.data(), 8);
}

uint64_t IpAddress::low64() const {
    return big_endian(bytes_.data() + 8, 8);
}

std::string IpAddress::to_string() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (family() == Family::ipv4)
        inet_ntop(AF_INET, bytes_.data() + kMappedPrefix.size(), text.data(), text.size());
    else
        inet_ntop(AF_INET6, bytes_.data(), text.data(), text.size());
    return text.data();
}

Result<Prefix> Prefix::make(IpAddress address, unsigned length) {
    const unsigned most = family_bits(address.family());
    if (length > most)
        return make_error(
            ErrorCode::usage,
            "/" + std::to_string(length) + " is too long a prefix for " + address.to_string(),
            "use a length from 0 to " + std::to_string(most));
    Prefix prefix;
    prefix.address_ = without_host_bits(address, length);
    prefix.length_ = static_cast<uint8_t>(length);
    return prefix;
}

Prefix Prefix::host(IpAddress address) {
    Prefix prefix;
    prefix.address_ = address;
    prefix.length_ = static_cast<uint8_t>(family_bits(address.family()));
    return prefix;
}

Result<Prefix> Prefix::parse(std::string_view text, bool* host_bits_cleared) {
    if (host_bits_cleared != nullptr)
        *host_bits_cleared = false;
    const size_t slash = text.find('/');
    const auto address = IpAddress::parse(text.substr(0, slash));
    if (!address) {
        const Flaw flaw = flaw_of(text.substr(0, slash), true);
        return refuse(text, flaw.what, flaw.mend);
    }
    if (slash == std::string_view::npos)
        return host(*address);

    const bool mapped = address->family() == Family::ipv4 && has_colon(text);
    const unsigned most = mapped ? kIpv6Bits : family_bits(address->family());
    const auto length = parse_length(text.substr(slash + 1));
    if (!length || *length > most)
        return refuse(text, "has a bad prefix length",
                      "use a whole number from 0 to " + std::to_string(most) + " behind the slash");
    if (mapped && *length > 0 && *length < kMappedBits)
        return refuse(text, "cuts through the IPv4-mapped range ::ffff:0:0/96",
                      "use the IPv4 prefix itself, such as 192.0.2.0/24");

    IpAddress written = *address;
    unsigned own_length = *length;
    if (mapped && own_length >= kMappedBits)
        own_length -= kMappedBits;
    else if (mapped)
        written = IpAddress{};  // /0 leaves nothing of the mapped range: it is ::/0.
    auto prefix = make(written, own_length);
    if (prefix && host_bits_cleared != nullptr)
        *host_bits_cleared = prefix->address() != *address;
    return prefix;
}

bool Prefix::is_host() const {
    return length_ == family_bits(family());
}

bool Prefix::contains(const IpAddress& address) const {
    return address.family() == family() && without_host_bits(address, length_) == address_;
}

bool Prefix::contains(const Prefix& other) const {
    return other.length_ >= length_ && contains(other.address_);
}

std::string Prefix::to_string() const {
    if (is_host())
        return address_.to_string();
    return address_.to_string() + "/" + std::to_string(length_);
}

}  // namespace sluice
