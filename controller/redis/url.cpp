#include "redis/url.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace sluice::redis {

namespace {

constexpr uint16_t kServerPort = 6379;
constexpr uint16_t kSentinelPort = 26379;
// More than anybody runs; each costs time when Redis is gone.
constexpr size_t kMostEndpoints = 64;
constexpr unsigned kHighestDatabase = 65'535;

constexpr std::string_view kHint =
    "use redis://HOST:PORT, rediss://HOST:PORT (TLS), unix:///PATH, "
    "redis+sentinel://HOST,HOST/NAME or redis+cluster://HOST,HOST";

struct Scheme {
    std::string_view prefix;
    Form form;
    bool tls;
    uint16_t port;
};

constexpr std::array kSchemes = {
    Scheme{"redis://", Form::server, false, kServerPort},
    Scheme{"rediss://", Form::server, true, kServerPort},
    Scheme{"redis+sentinel://", Form::sentinel, false, kSentinelPort},
    Scheme{"rediss+sentinel://", Form::sentinel, true, kSentinelPort},
    Scheme{"redis+cluster://", Form::cluster, false, kServerPort},
    Scheme{"rediss+cluster://", Form::cluster, true, kServerPort},
};

Error refuse(std::string message, std::string_view hint = kHint) {
    return make_error(ErrorCode::usage, "url: " + std::move(message), std::string(hint));
}

template <class Number>
std::optional<Number> parse_number(std::string_view text, Number least, Number most) {
    Number number = 0;
    const auto end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, number);
    if (failure != std::errc{} || stop != end || number < least || number > most)
        return std::nullopt;
    return number;
}

Result<uint16_t> parse_port(std::string_view text) {
    const auto port = parse_number<uint16_t>(text, 1, 65'535);
    if (!port)
        return refuse(in_quotes(text) + " is no port");
    return *port;
}

bool is_host_character(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '.' || c == '_' || c == ':' || c == '%';
}

Result<Endpoint> make_endpoint(std::string_view host, std::string_view port, uint16_t usual_port) {
    if (host.empty() || !std::all_of(host.begin(), host.end(), is_host_character))
        return refuse(in_quotes(host) + " is no host");
    Endpoint endpoint{std::string(host), usual_port, {}};
    if (port.empty())
        return endpoint;
    const auto number = parse_port(port.substr(1));
    if (!number)
        return number.error();
    endpoint.port = *number;
    return endpoint;
}

// HOST, HOST:PORT, [IPV6] or [IPV6]:PORT.
Result<Endpoint> parse_endpoint(std::string_view text, uint16_t usual_port) {
    if (text.starts_with('[')) {
        const size_t end = text.find(']');
        if (end == std::string_view::npos || (end + 1 < text.size() && text[end + 1] != ':'))
            return refuse(in_quotes(text) + " is no host");
        return make_endpoint(text.substr(1, end - 1), text.substr(end + 1), usual_port);
    }
    const size_t colon = std::min(text.find(':'), text.size());
    if (text.find(':', colon + 1) < text.size())
        return refuse(in_quotes(text) + " has several colons", "write IPv6 addresses as [ADDRESS]");
    return make_endpoint(text.substr(0, colon), text.substr(colon), usual_port);
}

Status parse_endpoints(std::string_view list, const Scheme& scheme, Target& target) {
    for (size_t at = 0; at <= list.size();) {
        const size_t comma = std::min(list.find(',', at), list.size());
        auto endpoint = parse_endpoint(list.substr(at, comma - at), scheme.port);
        if (!endpoint)
            return endpoint.error();
        target.endpoints.push_back(*std::move(endpoint));
        at = comma + 1;
    }
    if (target.endpoints.size() > kMostEndpoints)
        return refuse("names more than " + std::to_string(kMostEndpoints) + " hosts");
    if (scheme.form == Form::server && target.endpoints.size() > 1)
        return refuse("names several hosts", "use redis+sentinel:// or redis+cluster://");
    return {};
}

Status parse_database(std::string_view text, Target& target) {
    if (text.empty())
        return {};
    const auto database = parse_number<unsigned>(text, 0, kHighestDatabase);
    if (!database)
        return refuse(in_quotes(text) + " is no database", "use a number such as redis://HOST/2");
    target.database = *database;
    return {};
}

// What is behind the hosts: the name of the master, the number of the database.
Status parse_path(std::string_view path, Target& target) {
    switch (target.form) {
        case Form::server:
            return parse_database(path, target);
        case Form::sentinel: {
            const size_t slash = std::min(path.find('/'), path.size());
            target.master_name = path.substr(0, slash);
            if (target.master_name.empty())
                return refuse("names no master", "use redis+sentinel://HOST,HOST/NAME");
            return parse_database(path.substr(std::min(slash + 1, path.size())), target);
        }
        case Form::cluster:
            if (!path.empty())
                return refuse("a Redis Cluster has no database but 0");
            return {};
    }
    return {};
}

Result<Target> parse_unix(std::string_view path) {
    if (!path.starts_with('/'))
        return refuse("the path of the socket does not begin with /", "use unix:///PATH");
    Target target;
    target.endpoints.push_back({.host = {}, .port = 0, .path = std::string(path)});
    return target;
}

}  // namespace

std::string Endpoint::to_string() const {
    if (host.empty())
        return path;
    const bool is_ipv6 = host.find(':') != std::string::npos;
    return (is_ipv6 ? '[' + host + ']' : host) + ':' + std::to_string(port);
}

Result<Target> parse_url(std::string_view url) {
    constexpr std::string_view kUnix = "unix://";
    if (url.starts_with(kUnix))
        return parse_unix(url.substr(kUnix.size()));
    const auto scheme = std::find_if(kSchemes.begin(), kSchemes.end(), [&](const Scheme& known) {
        return url.starts_with(known.prefix);
    });
    if (scheme == kSchemes.end())
        // Not shown: it may hold a password.
        return refuse("begins with none of the known schemes");
    const std::string_view rest = url.substr(scheme->prefix.size());
    if (rest.find('@') != std::string_view::npos)
        return refuse("holds a user or a password",
                      "leave it out: [redis] username and password_file are for that");

    Target target{.form = scheme->form, .tls = scheme->tls, .endpoints = {}, .master_name = {}};
    const size_t slash = std::min(rest.find('/'), rest.size());
    if (const Status hosts = parse_endpoints(rest.substr(0, slash), *scheme, target); !hosts)
        return hosts.error();
    const std::string_view path = rest.substr(std::min(slash + 1, rest.size()));
    if (const Status read = parse_path(path, target); !read)
        return read.error();
    return target;
}

Result<Endpoint> parse_redirect(std::string_view address) {
    const size_t colon = address.rfind(':');
    if (colon == std::string_view::npos)
        return refuse(in_quotes(address) + " is no address", "");
    const auto port = parse_port(address.substr(colon + 1));
    if (!port)
        return port.error();
    return Endpoint{std::string(address.substr(0, colon)), *port, {}};
}

}  // namespace sluice::redis
