#include "risk/judge.h"

#include <algorithm>
#include <cstdio>

namespace sluice {

namespace {

// At one call: each is looked for in the gate.
constexpr size_t kMostDecided = 1'000;

}  // namespace

std::string RiskBan::reason() const {
    char text[64];
    (void)std::snprintf(text, sizeof text, "score %.0f, ban %u", before.score, times);
    return text;
}

void RiskJudge::change(const RiskSettings& settings) {
    settings_ = settings;
    book.change(settings);
    allowance.change(settings);
}

std::vector<RiskBan> RiskJudge::decide(const World& world, uint64_t now_ms) {
    std::vector<RiskBan> bans;
    counts_.waiting = book.due();
    if (allowance.stopped())
        return bans;
    for (const Prefix& source : book.take_due(kMostDecided, now_ms)) {
        const auto in_never = [&](const Prefix& never) { return never.contains(source); };
        const bool is_seen = world.is_seen(source);
        if (is_seen &&
            (std::ranges::any_of(settings_.never, in_never) || world.is_guarded(source))) {
            ++counts_.spared;
            book.spare(source);
            continue;
        }
        if (!is_seen || !allowance.take(world.verified, now_ms)) {
            book.wait(source);
            continue;
        }
        RiskBan ban{.source = source,
                    .time = book.next_ban(source, now_ms),
                    .before = *book.find(source, now_ms)};
        book.banned(source, now_ms);
        ban.times = book.find(source, now_ms)->times;
        bans.push_back(ban);
        ++counts_.bans;
    }
    counts_.waiting = book.due();
    return bans;
}

void RiskJudge::take_back(const RiskBan& ban) {
    --counts_.bans;
    allowance.give_back();
    book.undo_ban(ban.source, ban.before);
}

}  // namespace sluice
