// Frames that read as sentences:
//   Ethernet().vlan(10) / from("192.0.2.10").to("203.0.113.1") / tcp(40000, 443).syn()
// Lengths and the numbers of what follows are filled in when the frame is put together; each can be
// overruled, to say something that is not so. Checksums stay 0: the gate leaves them to the stack.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "net/address.h"

namespace sluice {

using Bytes = std::vector<uint8_t>;

Bytes operator+(Bytes left, const Bytes& right);

// A header that learns what follows it when the frame is put together.
struct Layer {
    uint8_t protocol = 0;     // what IP calls it
    uint16_t ether_type = 0;  // what Ethernet calls it
    // The header with `rest` behind it; `next` is the layer there, or nullptr.
    std::function<Bytes(const Bytes& rest, const Layer* next)> wrap;
};

class Ethernet {
  public:
    Ethernet& vlan(uint16_t id, uint16_t tag_type = 0x8100);
    Ethernet& vlans(unsigned count);
    // Instead of what the next layer is called.
    Ethernet& type(uint16_t ether_type);

    [[nodiscard]] Bytes wrap(const Bytes& rest, const Layer* next) const;

  private:
    struct Tag {
        uint16_t type;
        uint16_t id;
    };
    std::vector<Tag> tags_;
    std::optional<uint16_t> type_;
};

// The IP header of either family; a fragment of IPv6 has its own header behind it.
class Ip {
  public:
    explicit Ip(const IpAddress& source);
    Ip& to(std::string_view destination);
    Ip& to(const IpAddress& destination);
    // IPv4 only.
    Ip& options(unsigned words);
    Ip& claim_header_words(unsigned words);
    // Offset in bytes, a multiple of 8.
    Ip& fragment(unsigned offset, bool more);
    Ip& hop_limit(unsigned hops);
    Ip& version(unsigned version);
    // Instead of what the next layer is called.
    Ip& protocol(uint8_t number);
    // IPv4's total length or IPv6's payload length, instead of what is there.
    Ip& claim_length(unsigned bytes);

    operator Layer() const;  // NOLINT(google-explicit-constructor): so that `/` takes it

  private:
    [[nodiscard]] Bytes wrap(const Bytes& rest, const Layer* next) const;
    [[nodiscard]] Bytes wrap_ipv4(const Bytes& rest, uint8_t next) const;
    [[nodiscard]] Bytes wrap_ipv6(const Bytes& rest, uint8_t next) const;

    struct Fragment {
        unsigned offset;
        bool more;
    };
    IpAddress source_;
    IpAddress destination_;
    unsigned option_words_ = 0;
    unsigned hop_limit_ = 64;
    std::optional<unsigned> header_words_;
    std::optional<unsigned> version_;
    std::optional<unsigned> length_;
    std::optional<uint8_t> protocol_;
    std::optional<Fragment> fragment_;
};

Ip from(std::string_view source);
Ip from(const IpAddress& source);

// IPv6 extension headers. `units` is the length field as it stands in the header.
class Extension {
  public:
    Extension(uint8_t protocol, unsigned units) : protocol_(protocol), units_(units) {}
    // The bytes behind the first two, which are 0 otherwise.
    Extension& content(Bytes bytes);
    Extension& next(uint8_t protocol);
    operator Layer() const;  // NOLINT(google-explicit-constructor)

  private:
    uint8_t protocol_;
    unsigned units_;
    Bytes content_;
    std::optional<uint8_t> next_;
};

Extension hop_by_hop(unsigned units = 0);
Extension routing(unsigned units = 0);
Extension destination_options(unsigned units = 0);
Extension authentication(unsigned units = 4);  // (units + 2) × 4 bytes long
Extension fragment_header(unsigned offset, bool more);

class Tcp {
  public:
    Tcp(uint16_t source, uint16_t destination) : source_(source), destination_(destination) {}
    Tcp& syn() { return flag(0x02); }
    Tcp& ack() { return flag(0x10); }
    Tcp& rst() { return flag(0x04); }
    Tcp& flag(uint8_t bits);
    Tcp& no_flags();
    Tcp& options(unsigned words);
    Tcp& claim_header_words(unsigned words);
    Tcp& payload(size_t bytes);
    operator Layer() const;  // NOLINT(google-explicit-constructor)

  private:
    uint16_t source_;
    uint16_t destination_;
    uint8_t flags_ = 0;
    unsigned option_words_ = 0;
    std::optional<unsigned> header_words_;
    size_t payload_ = 0;
};

class Udp {
  public:
    Udp(uint16_t source, uint16_t destination) : source_(source), destination_(destination) {}
    Udp& payload(size_t bytes);
    Udp& claim_length(unsigned bytes);
    operator Layer() const;  // NOLINT(google-explicit-constructor)

  private:
    uint16_t source_;
    uint16_t destination_;
    size_t payload_ = 0;
    std::optional<unsigned> length_;
};

Tcp tcp(uint16_t source_port, uint16_t destination_port);
Udp udp(uint16_t source_port, uint16_t destination_port);
// Of IPv4 and of IPv6: 8 bytes, then as many zeros as `more` says.
Layer icmp(uint8_t type, uint8_t code = 0, size_t more = 0);
Layer icmp6(uint8_t type, uint8_t code = 0, size_t more = 0);
// Whatever it is, under this number.
Layer raw(uint8_t protocol, Bytes bytes);
// Request for `address`, as Ethernet carries it.
Layer arp(std::string_view sender, std::string_view address);

class Packet {
  public:
    Packet(Ethernet ethernet) : ethernet_(std::move(ethernet)) {}  // NOLINT: `/` starts with it
    Packet& add(Layer layer);
    // The frame ends after this many bytes, or goes on with zeros up to it.
    Packet& cut_to(size_t bytes);
    Packet& pad_to(size_t bytes);

    [[nodiscard]] Bytes bytes() const;

  private:
    Ethernet ethernet_;
    std::vector<Layer> layers_;
    std::optional<size_t> cut_;
    size_t least_ = 0;
};

Packet operator/(Packet packet, const Layer& layer);

}  // namespace sluice
