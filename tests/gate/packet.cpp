#include "packet.h"

#include <algorithm>
#include <utility>

namespace sluice {

namespace {

constexpr uint16_t kIpv4Type = 0x0800;
constexpr uint16_t kIpv6Type = 0x86dd;
constexpr uint16_t kArpType = 0x0806;
constexpr uint8_t kFragmentHeader = 44;
constexpr uint8_t kAuthentication = 51;
constexpr uint8_t kNoNextHeader = 59;

// Big-endian numbers, one after the other.
class Writer {
  public:
    Writer& u8(unsigned value) {
        bytes_.push_back(static_cast<uint8_t>(value));
        return *this;
    }
    Writer& u16(size_t value) {
        return u8(static_cast<unsigned>(value >> 8 & 0xff)).u8(static_cast<unsigned>(value & 0xff));
    }
    Writer& u32(uint32_t value) { return u16(value >> 16).u16(value & 0xffff); }
    Writer& zeros(size_t count) {
        bytes_.resize(bytes_.size() + count);
        return *this;
    }
    Writer& bytes(const uint8_t* first, size_t count) {
        bytes_.insert(bytes_.end(), first, first + count);
        return *this;
    }
    Writer& bytes(const Bytes& more) { return bytes(more.data(), more.size()); }
    [[nodiscard]] Bytes take() { return std::move(bytes_); }

  private:
    Bytes bytes_;
};

IpAddress parse_address(std::string_view text) {
    return IpAddress::parse(text).value();
}

const uint8_t* ipv4_bytes(const IpAddress& address) {
    return address.bytes().data() + 12;
}

Bytes fragment_bytes(unsigned next, unsigned offset, bool more) {
    return Writer().u8(next).u8(0).u16(offset | (more ? 1U : 0U)).u32(0x51ce).take();
}

}  // namespace

Bytes operator+(Bytes left, const Bytes& right) {
    left.insert(left.end(), right.begin(), right.end());
    return left;
}

// --- Ethernet ----------------------------------------------------------------------------------

Ethernet& Ethernet::vlan(uint16_t id, uint16_t tag_type) {
    tags_.push_back({tag_type, id});
    return *this;
}

Ethernet& Ethernet::vlans(unsigned count) {
    for (unsigned i = 0; i < count; ++i)
        vlan(static_cast<uint16_t>(10 + i), i + 1 < count ? 0x88a8 : 0x8100);
    return *this;
}

Ethernet& Ethernet::type(uint16_t ether_type) {
    type_ = ether_type;
    return *this;
}

Bytes Ethernet::wrap(const Bytes& rest, const Layer* next) const {
    constexpr uint16_t kExperimental = 0x88b5;
    Writer writer;
    writer.bytes({0x02, 0, 0, 0, 0, 0x01}).bytes({0x02, 0, 0, 0, 0, 0x02});
    for (const Tag& tag : tags_)
        writer.u16(tag.type).u16(tag.id);
    writer.u16(type_.value_or(next != nullptr ? next->ether_type : kExperimental));
    return writer.bytes(rest).take();
}

// --- IP ----------------------------------------------------------------------------------------

Ip::Ip(const IpAddress& source) : source_(source) {}

Ip& Ip::to(std::string_view destination) {
    return to(parse_address(destination));
}

Ip& Ip::to(const IpAddress& destination) {
    destination_ = destination;
    return *this;
}

Ip& Ip::options(unsigned words) {
    option_words_ = words;
    return *this;
}

Ip& Ip::claim_header_words(unsigned words) {
    header_words_ = words;
    return *this;
}

Ip& Ip::fragment(unsigned offset, bool more) {
    fragment_ = {offset, more};
    return *this;
}

Ip& Ip::hop_limit(unsigned hops) {
    hop_limit_ = hops;
    return *this;
}

Ip& Ip::version(unsigned version) {
    version_ = version;
    return *this;
}

Ip& Ip::protocol(uint8_t number) {
    protocol_ = number;
    return *this;
}

Ip& Ip::claim_length(unsigned bytes) {
    length_ = bytes;
    return *this;
}

Ip::operator Layer() const {
    const bool ipv4 = source_.family() == Family::ipv4;
    return {static_cast<uint8_t>(ipv4 ? IPPROTO_IPIP : IPPROTO_IPV6), ipv4 ? kIpv4Type : kIpv6Type,
            [ip = *this](const Bytes& rest, const Layer* next) { return ip.wrap(rest, next); }};
}

Bytes Ip::wrap(const Bytes& rest, const Layer* next) const {
    const uint8_t number =
        protocol_.value_or(next != nullptr ? next->protocol : uint8_t{kNoNextHeader});
    return source_.family() == Family::ipv4 ? wrap_ipv4(rest, number) : wrap_ipv6(rest, number);
}

Bytes Ip::wrap_ipv4(const Bytes& rest, uint8_t next) const {
    constexpr uint8_t kNoOperation = 1;
    const size_t length = 20 + option_words_ * 4 + rest.size();
    const unsigned offset =
        fragment_ ? fragment_->offset / 8 | (fragment_->more ? 0x2000U : 0U) : 0;
    Writer writer;
    writer.u8(version_.value_or(4) << 4 | header_words_.value_or(5 + option_words_)).u8(0);
    writer.u16(length_.value_or(static_cast<unsigned>(length))).u16(0x51ce).u16(offset);
    writer.u8(hop_limit_).u8(next).u16(0);
    writer.bytes(ipv4_bytes(source_), 4).bytes(ipv4_bytes(destination_), 4);
    return writer.bytes(Bytes(option_words_ * 4, kNoOperation)).bytes(rest).take();
}

Bytes Ip::wrap_ipv6(const Bytes& rest, uint8_t next) const {
    const Bytes body =
        fragment_ ? fragment_bytes(next, fragment_->offset, fragment_->more) + rest : rest;
    Writer writer;
    writer.u8(version_.value_or(6) << 4).u8(0).u16(0);
    writer.u16(length_.value_or(static_cast<unsigned>(body.size())));
    writer.u8(fragment_ ? kFragmentHeader : next).u8(hop_limit_);
    writer.bytes(source_.bytes().data(), 16).bytes(destination_.bytes().data(), 16);
    return writer.bytes(body).take();
}

Ip from(std::string_view source) {
    return Ip(parse_address(source));
}
Ip from(const IpAddress& source) {
    return Ip(source);
}

// --- extension headers -------------------------------------------------------------------------

Extension& Extension::content(Bytes bytes) {
    content_ = std::move(bytes);
    return *this;
}

Extension& Extension::next(uint8_t protocol) {
    next_ = protocol;
    return *this;
}

Extension::operator Layer() const {
    return {protocol_, 0, [self = *this](const Bytes& rest, const Layer* next) {
                const size_t length = self.protocol_ == kAuthentication ? (self.units_ + 2) * 4
                                                                        : (self.units_ + 1) * 8;
                Bytes header = self.content_;
                header.resize(length - 2);
                const uint8_t number =
                    self.next_.value_or(next != nullptr ? next->protocol : uint8_t{kNoNextHeader});
                return Writer().u8(number).u8(self.units_).bytes(header).bytes(rest).take();
            }};
}

Extension hop_by_hop(unsigned units) {
    return {IPPROTO_HOPOPTS, units};
}
Extension routing(unsigned units) {
    return {IPPROTO_ROUTING, units};
}
Extension destination_options(unsigned units) {
    return {IPPROTO_DSTOPTS, units};
}
Extension authentication(unsigned units) {
    return {kAuthentication, units};
}

Extension fragment_header(unsigned offset, bool more) {
    const Bytes whole = fragment_bytes(0, offset, more);
    return Extension(kFragmentHeader, 0).content(Bytes(whole.begin() + 2, whole.end()));
}

// --- what is inside ----------------------------------------------------------------------------

Tcp& Tcp::flag(uint8_t bits) {
    flags_ = static_cast<uint8_t>(flags_ | bits);
    return *this;
}

Tcp& Tcp::no_flags() {
    flags_ = 0;
    return *this;
}

Tcp& Tcp::options(unsigned words) {
    option_words_ = words;
    return *this;
}

Tcp& Tcp::claim_header_words(unsigned words) {
    header_words_ = words;
    return *this;
}

Tcp& Tcp::payload(size_t bytes) {
    payload_ = bytes;
    return *this;
}

Tcp::operator Layer() const {
    return {IPPROTO_TCP, 0, [self = *this](const Bytes& rest, const Layer*) {
                Writer writer;
                writer.u16(self.source_).u16(self.destination_).u32(1).u32(1);
                writer.u8(self.header_words_.value_or(5 + self.option_words_) << 4);
                writer.u8(self.flags_).u16(1024).u16(0).u16(0);
                return writer.zeros(self.option_words_ * 4 + self.payload_).bytes(rest).take();
            }};
}

Udp& Udp::payload(size_t bytes) {
    payload_ = bytes;
    return *this;
}

Udp& Udp::claim_length(unsigned bytes) {
    length_ = bytes;
    return *this;
}

Udp::operator Layer() const {
    return {IPPROTO_UDP, 0, [self = *this](const Bytes& rest, const Layer*) {
                const size_t length = 8 + self.payload_ + rest.size();
                Writer writer;
                writer.u16(self.source_).u16(self.destination_);
                writer.u16(self.length_.value_or(static_cast<unsigned>(length))).u16(0);
                return writer.zeros(self.payload_).bytes(rest).take();
            }};
}

Tcp tcp(uint16_t source_port, uint16_t destination_port) {
    return {source_port, destination_port};
}
Udp udp(uint16_t source_port, uint16_t destination_port) {
    return {source_port, destination_port};
}

Layer raw(uint8_t protocol, Bytes bytes) {
    return {protocol, 0,
            [bytes = std::move(bytes)](const Bytes& rest, const Layer*) { return bytes + rest; }};
}

Layer icmp(uint8_t type, uint8_t code, size_t more) {
    return raw(IPPROTO_ICMP, Writer().u8(type).u8(code).zeros(6 + more).take());
}

Layer icmp6(uint8_t type, uint8_t code, size_t more) {
    return raw(IPPROTO_ICMPV6, Writer().u8(type).u8(code).zeros(6 + more).take());
}

Layer arp(std::string_view sender, std::string_view address) {
    Writer writer;
    writer.u16(1).u16(kIpv4Type).u8(6).u8(4).u16(1);
    writer.bytes({0x02, 0, 0, 0, 0, 0x02}).bytes(ipv4_bytes(parse_address(sender)), 4);
    writer.zeros(6).bytes(ipv4_bytes(parse_address(address)), 4);
    Layer layer = raw(0, writer.take());
    layer.ether_type = kArpType;
    return layer;
}

// --- the frame ---------------------------------------------------------------------------------

Packet& Packet::add(Layer layer) {
    layers_.push_back(std::move(layer));
    return *this;
}

Packet& Packet::cut_to(size_t bytes) {
    cut_ = bytes;
    return *this;
}

Packet& Packet::pad_to(size_t bytes) {
    least_ = bytes;
    return *this;
}

Bytes Packet::bytes() const {
    Bytes frame;
    const Layer* next = nullptr;
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
        frame = layer->wrap(frame, next);
        next = &*layer;
    }
    frame = ethernet_.wrap(frame, next);
    frame.resize(std::max(frame.size(), least_));
    if (cut_)
        frame.resize(std::min(frame.size(), *cut_));
    return frame;
}

Packet operator/(Packet packet, const Layer& layer) {
    packet.add(layer);
    return packet;
}

}  // namespace sluice
