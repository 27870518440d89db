#include "policy/risk_reader.h"

#include <string>

#include "base/quantities.h"
#include "base/text.h"
#include "policy/prefix_reader.h"

namespace sluice {

namespace {

using std::chrono::nanoseconds, std::chrono::milliseconds, std::chrono::hours;

// Scores are counts of something; doubles hold such numbers exactly.
constexpr double kLeastScore = 0.001;
constexpr double kMostScore = 1e12;
constexpr nanoseconds kShortestTime = std::chrono::seconds(1);
constexpr nanoseconds kLongestTime = hours(24 * 365);
// What all hosts of the largest fleet could list at once is a million.
constexpr uint64_t kMostBans = 100'000;
// Each is looked at for each ban.
constexpr size_t kMostSpared = 1'000;
constexpr size_t kLongestKey = 256;
constexpr std::string_view kForGood = "permanent";

void read_score(TableReader& table, std::string_view key, double least, double& score) {
    if (const auto field = table.take(key))
        score = field->number(least, kMostScore).value_or(score);
}

nanoseconds check_time(const Field& field, nanoseconds time) {
    if (time < kShortestTime || time > kLongestTime)
        field.fail("is out of range", "use a time of \"" + format_duration(kShortestTime) +
                                          "\" to \"" + format_duration(kLongestTime) + '"');
    return time;
}

void read_time(TableReader& table, std::string_view key, std::string_view example,
               nanoseconds& time) {
    if (const auto field = table.take(key))
        time = check_time(*field, field->parsed(parse_duration, example).value_or(time));
}

void read_longest_ban(TableReader& table, RiskSettings& risk) {
    const auto field = table.take("max_ban");
    if (!field)
        return;
    const auto text = field->string("\"30m\" or \"permanent\"");
    if (text == kForGood) {
        risk.max_ban.reset();
        return;
    }
    risk.max_ban =
        check_time(*field, field->parsed(parse_duration, "\"30m\"").value_or(*risk.max_ban));
    if (*risk.max_ban < risk.ban)
        field->fail("is shorter than the first ban",
                    "use at least \"" + format_duration(risk.ban) + '"');
}

void read_set(TableReader& table, RiskSettings& risk) {
    if (const auto zset = table.take("zset")) {
        risk.zset = zset->string("\"rl:risk\"").value_or(risk.zset);
        if (risk.zset.size() > kLongestKey || risk.zset.starts_with("sluice:"))
            zset->fail("is no key that others write", "use one such as \"rl:risk\"");
    }
    read_score(table, "weight", 0, risk.weight);
    risk.max_step = risk.enter;
    read_score(table, "max_step", kLeastScore, risk.max_step);
    if (const auto drain = table.take("drain"))
        risk.drain = drain->boolean().value_or(false);
}

void read_caps(TableReader& table, RiskSettings& risk) {
    const auto read_count = [&table](std::string_view key, unsigned& count) {
        if (const auto field = table.take(key))
            count = static_cast<unsigned>(field->integer(0, kMostBans).value_or(count));
    };
    read_count("max_bans_per_minute", risk.max_bans_per_minute);
    read_count("max_bans_per_hour", risk.max_bans_per_hour);
    if (const auto share = table.take("max_share"))
        risk.max_share = share->number(0, 1).value_or(risk.max_share);
}

void read_never(TableReader& table, RiskSettings& risk, std::vector<std::string>& warnings) {
    const auto never = table.take("never");
    const auto items = never ? never->items("[\"192.0.2.0/24\"]") : std::nullopt;
    if (!items)
        return;
    if (items->size() > kMostSpared)
        never->fail("has too many prefixes", "use at most " + std::to_string(kMostSpared) +
                                                 ", or [sources] allow, which bans do not reach");
    for (const Field& item : *items)
        if (const auto prefix = read_prefix(item, warnings))
            risk.never.push_back(*prefix);
}

}  // namespace

void read_risk(const Field& field, Policy& policy) {
    auto table = field.table("[risk]");
    if (!table)
        return;
    RiskSettings risk;
    read_time(*table, "half_life", "\"10m\"", risk.half_life);
    read_score(*table, "enter", kLeastScore, risk.enter);
    risk.leave = risk.enter / 2;
    if (const auto leave = table->take("leave")) {
        risk.leave = leave->number(0, kMostScore).value_or(risk.leave);
        if (risk.leave >= risk.enter || risk.leave <= 0)
            leave->fail("is no threshold below enter", "use a number above 0 and below it");
    }
    read_set(*table, risk);
    read_score(*table, "over_limit", 0, risk.over_limit);
    read_time(*table, "ban", "\"5m\"", risk.ban);
    if (!table->has("max_ban") && *risk.max_ban < risk.ban)
        risk.max_ban = risk.ban;
    read_longest_ban(*table, risk);
    read_time(*table, "memory", "\"24h\"", risk.memory);
    read_caps(*table, risk);
    read_never(*table, risk, policy.warnings);
    table->finish();
    policy.risk = std::move(risk);
}

}  // namespace sluice
