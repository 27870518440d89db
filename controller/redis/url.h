// Where Redis is, as [redis] url says it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::redis {

// A TCP port of a host, or a Unix socket.
struct Endpoint {
    std::string host;  // name or address, without brackets; empty: a Unix socket
    uint16_t port = 0;
    std::string path;

    [[nodiscard]] std::string to_string() const;
    friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

enum class Form { server, sentinel, cluster };

struct Target {
    Form form = Form::server;
    bool tls = false;
    std::vector<Endpoint> endpoints;  // one server, or the sentinels or nodes to begin with
    std::string master_name;          // of Form::sentinel
    unsigned database = 0;
};

// ErrorCode::usage for everything else. A user or password in the url is refused, and not shown.
Result<Target> parse_url(std::string_view url);

// "HOST:PORT" as Redis writes it in MOVED: the last colon divides, IPv6 has no brackets.
Result<Endpoint> parse_redirect(std::string_view address);

}  // namespace sluice::redis
