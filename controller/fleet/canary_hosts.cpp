#include "fleet/canary_hosts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "base/text.h"

namespace sluice {

namespace {

constexpr unsigned kAll = 10'000;  // hundredths of a percent
constexpr size_t kShortestId = 8;  // of 32 digits: one in four thousand millions is another host's
constexpr size_t kLongestText = 256;  // what push.lua takes

Error no_hosts(std::string_view text) {
    return make_error(ErrorCode::usage, "--canary: " + in_quotes(text) + " names no hosts",
                      "use a part such as 10%, or names or ids such as edge1,edge2");
}

// FNV-1a, the same on every host and in every version.
uint64_t hash_of(std::string_view text) {
    uint64_t hash = 14'695'981'039'346'656'037U;
    for (const char c : text)
        hash = (hash ^ static_cast<uint8_t>(c)) * 1'099'511'628'211U;
    return hash;
}

}  // namespace

Result<CanaryHosts> CanaryHosts::parse(std::string_view text) {
    CanaryHosts canaries;
    if (text.size() > kLongestText)
        return make_error(ErrorCode::usage, "--canary: so many names are not kept",
                          "use a part such as 10%");
    if (text.ends_with('%')) {
        double percent = 0;
        const auto* const last = text.data() + text.size() - 1;
        const auto [end, failure] = std::from_chars(text.data(), last, percent);
        canaries.per_10000_ =
            percent > 0 && percent <= 100 ? static_cast<unsigned>(std::lround(percent * 100)) : 0;
        if (failure != std::errc{} || end != last || canaries.per_10000_ == 0)
            return no_hosts(text);
        if (canaries.per_10000_ == kAll)
            return make_error(ErrorCode::usage,
                              "--canary: " + in_quotes(text) + " leaves no host to compare with",
                              "use a part such as 10%; for all hosts, leave out --canary");
        return canaries;
    }
    for (std::string_view rest = text;;) {
        const size_t comma = rest.find(',');
        const std::string_view host = rest.substr(0, comma);
        const bool is_word = !host.empty() && std::ranges::all_of(host, [](char c) {
            return c > ' ' && c != 127 && c != '%';
        });
        if (!is_word)
            return no_hosts(text);
        canaries.hosts_.emplace_back(host);
        if (comma == std::string_view::npos)
            return canaries;
        rest.remove_prefix(comma + 1);
    }
}

bool CanaryHosts::is_called(std::string_view host, std::string_view id, std::string_view name) {
    return host == name || (host.size() >= kShortestId && id.starts_with(host));
}

bool CanaryHosts::has(std::string_view id, std::string_view name) const {
    if (is_part())
        return hash_of(id) % kAll < per_10000_;
    return std::ranges::any_of(hosts_,
                               [&](const std::string& host) { return is_called(host, id, name); });
}

std::string CanaryHosts::to_string() const {
    if (is_part()) {
        char text[16];
        (void)std::snprintf(text, sizeof(text), "%g%%", per_10000_ / 100.0);
        return text;
    }
    std::string text;
    for (const std::string& host : hosts_)
        text += (text.empty() ? "" : ",") + host;
    return text;
}

}  // namespace sluice
