// Whom a member of a risk set is about: gateways write addresses in many forms.
#pragma once

#include <string_view>

#include "net/address.h"

namespace sluice {

// What is scored and banned: an IPv4 address, or the /64 that an IPv6 address lies in, as a host
// there has as many addresses as it likes.
Prefix risk_source(const IpAddress& address);

struct MemberSource {
    enum class Kind {
        source,
        identity,    // "uid:…", "dfp:…": a user or a device, which no packet shows
        unreadable,  // anything else
    };
    Kind kind = Kind::unreadable;
    Prefix source{};  // of Kind::source alone
};

// Text, 4 or 16 raw bytes, or either behind "ip:"; text with a port as in "192.0.2.7:58340",
// "[2001:db8::1]:58340", and as HAProxy writes it, "2001:db8::1:58340". A port of up to four digits
// behind an IPv6 address without brackets looks like a part of it, and is taken for one.
MemberSource source_of_member(std::string_view member);

}  // namespace sluice
