#include "risk/risk_message.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "base/text.h"
#include "risk/member_source.h"
#include "risk_commit.lua.h"
#include "risk_fence.lua.h"
#include "risk_lead.lua.h"

namespace sluice {

namespace {

constexpr uint64_t kHourMs = 3'600'000;
constexpr std::string_view kClear = "clear ";
constexpr std::string_view kRelease = "release";
constexpr std::string_view kForgetDue = "forget-due";
// The last number of a checkpoint.
constexpr unsigned kHeld = 1, kDue = 2;

template <class Number>
bool take_number(std::string_view& text, Number& number) {
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc{})
        return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.starts_with(' '))
        text.remove_prefix(1);
    return true;
}

// Up to the separator, which goes as well.
std::string_view take_until(std::string_view& text, char separator) {
    const std::string_view part = text.substr(0, text.find(separator));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    return part;
}

}  // namespace

RiskKeys::RiskKeys(std::string_view fleet)
    : base("sluice:{" + std::string(fleet) + ":risk}"),
      score(base + ":score"),
      state(base + ":state"),
      wanted(base + ":wanted"),
      seen(base + ":seen"),
      orders(base + ":orders") {}

std::string RiskKeys::new_score(uint64_t token) const {
    return score + ':' + std::to_string(token);
}

std::string RiskKeys::verified(uint64_t now_ms, unsigned hours_ago) const {
    return base + ":verified:" + std::to_string(now_ms / kHourMs - hours_ago);
}

std::string drained_key(std::string_view zset) {
    const size_t open = zset.find('{');
    const size_t close = open == std::string_view::npos ? open : zset.find('}', open);
    const bool has_tag = close != std::string_view::npos && close > open + 1;
    return has_tag ? std::string(zset) + ":sluice-drained"
                   : '{' + std::string(zset) + "}:sluice-drained";
}

redis::Command risk_lead_command(const RiskKeys& keys, std::string_view host,
                                 std::chrono::milliseconds time, bool wants) {
    redis::Command command = lua::kRiskLead.call({keys.base});
    command.add(host).add(time.count()).add(wants ? 1 : 0);
    return command;
}

Result<RiskLead> parse_risk_lead(const redis::Reply& reply) {
    const auto parts = reply.as_array();
    if (!parts)
        return parts.error();
    RiskLead lead;
    if (parts->size() != 4)
        return failed("risk: Redis's answer makes no sense");
    const auto mine = (*parts)[0].as_integer();
    const auto leader = (*parts)[1].as_text();
    const auto token = (*parts)[2].as_text();
    const auto now = (*parts)[3].as_text();
    if (!mine || !leader || !token || !now)
        return failed("risk: Redis's answer makes no sense");
    std::string_view token_text = *token, now_text = *now;
    lead.is_mine = *mine == 1;
    lead.leader = *leader;
    if (!take_number(token_text, lead.token) || !take_number(now_text, lead.now_ms))
        return failed("risk: Redis's answer makes no sense");
    return lead;
}

redis::Command risk_fence_command(std::string_view bans, uint64_t token) {
    return lua::kRiskFence.call({bans}).add(token);
}

redis::Command risk_commit_command(const RiskKeys& keys, std::string_view host, uint64_t token) {
    return lua::kRiskCommit.call({keys.base}).add(host).add(token);
}

std::string format_checkpoint(const SourceScore& score) {
    std::array<char, 160> text{};
    (void)std::snprintf(text.data(), text.size(), "%.17g %llu %llu %llu %u %u", score.score,
                        static_cast<unsigned long long>(score.at_ms),
                        static_cast<unsigned long long>(score.since_ms),
                        static_cast<unsigned long long>(score.banned_until_ms), score.times,
                        score.is_held     ? kHeld
                        : score.is_queued ? kDue
                                          : 0);
    return text.data();
}

std::optional<ScoreBook::Entry> parse_checkpoint(std::string_view source, std::string_view text) {
    const auto prefix = Prefix::parse(source);
    SourceScore score;
    unsigned standing = 0;
    if (!prefix || risk_source(prefix->address()) != *prefix || !take_number(text, score.score) ||
        !take_number(text, score.at_ms) || !take_number(text, score.since_ms) ||
        !take_number(text, score.banned_until_ms) || !take_number(text, score.times) ||
        !take_number(text, standing))
        return std::nullopt;
    score.is_held = standing == kHeld;
    score.is_queued = standing == kDue;
    return ScoreBook::Entry{*prefix, score};
}

std::string format_state(const BanAllowance& allowance) {
    std::string text;
    for (const uint64_t ban : allowance.recent())
        text += (text.empty() ? "" : " ") + std::to_string(ban);
    if (const auto& stopped = allowance.stopped())
        text += '\n' + std::to_string(stopped->since_ms) + ' ' + stopped->reason;
    return text;
}

RiskState parse_state(std::string_view text) {
    RiskState state;
    std::string_view bans = take_until(text, '\n');
    for (uint64_t ban = 0; !bans.empty() && take_number(bans, ban);)
        state.recent.push_back(ban);
    BanAllowance::Stop stop;
    if (!text.empty() && take_number(text, stop.since_ms)) {
        stop.reason = printable(shortened(text));
        state.stopped = stop;
    }
    return state;
}

std::string format_sources(const std::vector<Prefix>& sources) {
    std::string text;
    for (const Prefix& source : sources)
        text += (text.empty() ? "" : "\n") + source.to_string();
    return text;
}

std::vector<Prefix> parse_sources(std::string_view text, size_t most) {
    std::vector<Prefix> sources;
    while (!text.empty() && sources.size() < most)
        if (const auto source = Prefix::parse(take_until(text, '\n')))
            sources.push_back(*source);
    return sources;
}

std::string RiskOrder::format() const {
    switch (kind) {
        case Kind::clear:
            return std::string(kClear) + source.to_string();
        case Kind::forget_due:
            return std::string(kForgetDue);
        case Kind::release:
            break;
    }
    return std::string(kRelease);
}

std::optional<RiskOrder> parse_order(std::string_view text) {
    if (text == kRelease)
        return RiskOrder{RiskOrder::Kind::release};
    if (text == kForgetDue)
        return RiskOrder{RiskOrder::Kind::forget_due};
    if (!text.starts_with(kClear))
        return std::nullopt;
    const auto source = Prefix::parse(text.substr(kClear.size()));
    if (!source)
        return std::nullopt;
    return RiskOrder{RiskOrder::Kind::clear, *source};
}

}  // namespace sluice
