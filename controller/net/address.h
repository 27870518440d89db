// IP addresses and prefixes as values: canonical by construction, IPv4 and IPv6 in one type.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice {

enum class Family : uint8_t { ipv4, ipv6 };

// An IPv4 or IPv6 address. `::ffff:a.b.c.d` is the IPv4 address a.b.c.d.
class IpAddress {
  public:
    IpAddress() = default;  // ::
    // 16 bytes in network order, IPv4 as ::ffff:a.b.c.d: the form that packets and maps use.
    static IpAddress from_bytes(const std::array<uint8_t, 16>& bytes);
    static IpAddress from_ipv4(uint32_t host_order);
    // Text without port, zone or brackets.
    static Result<IpAddress> parse(std::string_view text);

    [[nodiscard]] Family family() const;
    [[nodiscard]] const std::array<uint8_t, 16>& bytes() const { return bytes_; }
    [[nodiscard]] uint32_t ipv4_host_order() const;  // only for Family::ipv4
    [[nodiscard]] uint64_t high64() const;           // bytes 0..7 as a host-order number
    [[nodiscard]] uint64_t low64() const;            // bytes 8..15 as a host-order number
    [[nodiscard]] std::string to_string() const;

    friend auto operator<=>(const IpAddress&, const IpAddress&) = default;

  private:
    std::array<uint8_t, 16> bytes_{};
};

// A prefix with its host bits clear. The length is in the family's own bits: 0..32 or 0..128.
// `::ffff:0:0/96` and longer is the IPv4 prefix with length − 96.
class Prefix {
  public:
    Prefix() = default;  // ::/0
    static Result<Prefix> make(IpAddress address, unsigned length);
    static Prefix host(IpAddress address);

    // "ADDRESS" or "ADDRESS/LENGTH". Host bits are cleared; *host_bits_cleared says so where given.
    static Result<Prefix> parse(std::string_view text, bool* host_bits_cleared = nullptr);

    [[nodiscard]] const IpAddress& address() const { return address_; }
    [[nodiscard]] Family family() const { return address_.family(); }
    [[nodiscard]] unsigned length() const { return length_; }
    [[nodiscard]] bool is_host() const;
    [[nodiscard]] bool contains(const IpAddress& address) const;
    [[nodiscard]] bool contains(const Prefix& other) const;
    [[nodiscard]] std::string to_string() const;  // a host without "/32", "/128"

    friend auto operator<=>(const Prefix&, const Prefix&) = default;

  private:
    IpAddress address_;
    uint8_t length_ = 0;
};

}  // namespace sluice
