#include "policy/schedule.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "policy/rule_id.h"
#include "policy/written_rate.h"

namespace sluice {

namespace {

using std::chrono::days, std::chrono::local_days;

constexpr std::array kWeekdays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

// An occurrence ends at most a day and the longest step of a clock after the midnight it begins at.
constexpr days kLongestOccurrence{2};
// A weekday whose hour is skipped comes again the week after.
constexpr days kTwoWeeks{14};
// With every offset that the zones have to each other, and a week more.
constexpr days kYear{373};

std::optional<Zone> zone_of(const Schedule& schedule) {
    // Reading it has found the zone; one that tzdata has lost since has no times any more.
    const auto zone = Zone::find(schedule.zone);
    return zone ? std::optional(*zone) : std::nullopt;
}

bool begins_on(const Schedule& schedule, local_days day) {
    return schedule.weekdays.contains(std::chrono::weekday(day).c_encoding()) ||
           schedule.dates.contains(std::chrono::year_month_day(day));
}

// That of one day, which can be empty.
Occurrence occurrence_on(const Schedule& schedule, const Zone& zone, local_days day) {
    const local_days last_day = schedule.to > schedule.from ? day : day + days(1);
    return {zone.first(day + schedule.from), zone.last(last_day + schedule.to)};
}

// The first one of these days that is not over at `now`.
std::optional<Occurrence> first_between(const Schedule& schedule, const Zone& zone,
                                        local_days first, local_days last, Instant now) {
    for (local_days day = first; day <= last; day += days(1)) {
        if (!begins_on(schedule, day))
            continue;
        const Occurrence found = occurrence_on(schedule, zone, day);
        if (found.end > now && found.begin < found.end)
            return found;
    }
    return std::nullopt;
}

std::string time_of_day(std::chrono::seconds time) {
    const std::chrono::hh_mm_ss parts(time);
    std::array<char, 16> text{};
    const auto hours = static_cast<int>(parts.hours().count());
    const auto minutes = static_cast<int>(parts.minutes().count());
    const auto seconds = static_cast<int>(parts.seconds().count());
    if (seconds == 0)
        (void)std::snprintf(text.data(), text.size(), "%02d:%02d", hours, minutes);
    else
        (void)std::snprintf(text.data(), text.size(), "%02d:%02d:%02d", hours, minutes, seconds);
    return text.data();
}

std::string date_text(const std::chrono::year_month_day& date) {
    std::array<char, 16> text{};
    (void)std::snprintf(text.data(), text.size(), "%04d-%02u-%02u", static_cast<int>(date.year()),
                        static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
    return text.data();
}

}  // namespace

std::optional<Occurrence> occurrence_from(const Schedule& schedule, Instant now) {
    const auto zone = zone_of(schedule);
    if (!zone)
        return std::nullopt;
    const auto today = std::chrono::floor<days>(zone->local(now));
    if (auto near =
            first_between(schedule, *zone, today - kLongestOccurrence, today + kTwoWeeks, now))
        return near;
    // No weekdays then, and dates are in order.
    for (const std::chrono::year_month_day& date : schedule.dates) {
        const local_days day(date);
        if (auto found = first_between(schedule, *zone, day, day, now))
            return found;
    }
    return std::nullopt;
}

std::set<Rule> rules_of(const Schedule& schedule) {
    std::set<Rule> rules;
    for (const auto& [dimension, limit] : schedule.per_source)
        rules.insert({Scope::per_source, dimension});
    for (const auto& [dimension, limit] : schedule.per_prefix)
        rules.insert({Scope::per_prefix, dimension});
    for (const auto& [dimension, limit] : schedule.budget)
        rules.insert({Scope::budget, dimension});
    return rules;
}

Limit limit_of(const Schedule& schedule, Rule rule) {
    if (rule.scope == Scope::budget)
        return schedule.budget.at(rule.dimension);
    return (rule.scope == Scope::per_source ? schedule.per_source : schedule.per_prefix)
        .at(rule.dimension);
}

void put_limit(Service& service, Rule rule, const Limit& limit) {
    if (rule.scope == Scope::budget)
        service.budget[rule.dimension] = std::get<TokenBucket>(limit);
    else
        (rule.scope == Scope::per_source ? service.per_source
                                         : service.per_prefix)[rule.dimension] = limit;
}

std::vector<DueSchedule> due_schedules(const Policy& policy, Instant now) {
    std::vector<DueSchedule> due;
    for (const Service& service : policy.services) {
        std::vector<std::pair<Instant, const Schedule*>> active;
        for (const Schedule& schedule : service.schedules)
            if (const auto found = occurrence_from(schedule, now); found && found->has(now))
                active.emplace_back(found->begin, &schedule);
        std::ranges::stable_sort(active, {}, &std::pair<Instant, const Schedule*>::first);
        std::set<Rule> taken;
        for (auto one = active.rbegin(); one != active.rend(); ++one) {
            std::set<Rule> rules;
            for (const Rule rule : rules_of(*one->second))
                if (taken.insert(rule).second)
                    rules.insert(rule);
            if (!rules.empty())
                due.push_back({service.name, one->second->name, std::move(rules)});
        }
    }
    return due;
}

std::optional<Instant> next_change(const Policy& policy, Instant now) {
    std::optional<Instant> next;
    for (const Service& service : policy.services)
        for (const Schedule& schedule : service.schedules) {
            const auto found = occurrence_from(schedule, now);
            if (!found)
                continue;
            const Instant change = found->has(now) ? found->end : found->begin;
            next = next ? std::min(*next, change) : change;
        }
    return next;
}

namespace {

// Whether `other` is due at any time of one of these days' occurrences of `schedule`.
bool meets_between(const Schedule& schedule, const Zone& zone, local_days first, local_days last,
                   const Schedule& other, const Zone& other_zone) {
    for (local_days day = first; day <= last; day += days(1)) {
        if (!begins_on(schedule, day))
            continue;
        const Occurrence here = occurrence_on(schedule, zone, day);
        const auto there = std::chrono::floor<days>(other_zone.local(here.begin));
        const auto found = first_between(other, other_zone, there - kLongestOccurrence,
                                         there + kLongestOccurrence, here.begin);
        if (found && found->begin < here.end && here.begin < here.end)
            return true;
    }
    return false;
}

bool meets(const Schedule& a, const Zone& zone_a, const Schedule& b, const Zone& zone_b,
           local_days first, local_days last) {
    for (const std::chrono::year_month_day& date : a.dates)
        if (meets_between(a, zone_a, local_days(date), local_days(date), b, zone_b))
            return true;
    return !a.weekdays.empty() && meets_between(a, zone_a, first, last, b, zone_b);
}

}  // namespace

bool overlap(const Schedule& a, const Schedule& b, Instant now) {
    // By one clock all weeks are alike; an hour that comes twice is nobody's mistake.
    const bool is_one_clock = a.zone == b.zone;
    const auto utc = Zone::find("UTC");
    const auto zone_a = is_one_clock ? utc : Zone::find(a.zone);
    const auto zone_b = is_one_clock ? utc : Zone::find(b.zone);
    if (!zone_a || !zone_b)
        return false;
    const auto first = std::chrono::floor<days>(utc->local(now));
    const local_days last = first + (is_one_clock ? kTwoWeeks : kYear);
    return meets(a, *zone_a, b, *zone_b, first, last) || meets(b, *zone_b, a, *zone_a, first, last);
}

std::string format_times(const Schedule& schedule) {
    constexpr unsigned kWeek = 7;
    std::string text;
    for (unsigned i = 1; i <= kWeek; ++i)  // from Monday on
        if (schedule.weekdays.contains(i % kWeek))
            text += (text.empty() ? "" : ", ") + std::string(kWeekdays.at(i % kWeek));
    for (const std::chrono::year_month_day& date : schedule.dates)
        text += (text.empty() ? "" : ", ") + date_text(date);
    return text + ' ' + time_of_day(schedule.from) + " to " + time_of_day(schedule.to) + ' ' +
           schedule.zone;
}

std::string format_changes(const Schedule& schedule) {
    std::string text;
    for (const Rule rule : rules_of(schedule))
        text += (text.empty() ? "" : ", ") + format_rule(rule) + ' ' +
                written_rate(limit_of(schedule, rule), rule.dimension);
    return text;
}

Instant wall_now() {
    return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

}  // namespace sluice
