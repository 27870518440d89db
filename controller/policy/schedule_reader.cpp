#include "policy/schedule_reader.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "policy/limit_reader.h"
#include "policy/rule_id.h"
#include "policy/schedule.h"
#include "policy/schedule_marks.h"

namespace sluice {

namespace {

using std::chrono::hours, std::chrono::minutes, std::chrono::seconds;

// Each is looked at every second, and compared with all others of its service.
constexpr size_t kMostSchedules = 16;
// Nobody looks further ahead, and more would be weekdays.
constexpr size_t kMostDates = 366;

constexpr std::string_view kDaysExample = "[\"fri\", \"2026-11-11\"]";
constexpr std::string_view kTimeExample = "\"19:55\"";
constexpr std::string_view kChangeExample = "budget = { data = \"60000/s\" }";

constexpr std::array<std::string_view, 7> kWeekdays = {"sun", "mon", "tue", "wed",
                                                       "thu", "fri", "sat"};

// Exactly so many digits, which are taken off the front.
std::optional<unsigned> take_digits(std::string_view& text, size_t count) {
    unsigned number = 0;
    if (text.size() < count)
        return std::nullopt;
    const char* end = text.data() + count;
    if (std::any_of(text.data(), end, [](char c) { return c < '0' || c > '9'; }))
        return std::nullopt;
    (void)std::from_chars(text.data(), end, number);
    text.remove_prefix(count);
    return number;
}

bool take(std::string_view& text, char c) {
    if (!text.starts_with(c))
        return false;
    text.remove_prefix(1);
    return true;
}

// "19:55", "19:55:30"
Result<seconds> parse_time_of_day(std::string_view text) {
    const Error wrong =
        failed(in_quotes(text) + " is no time of day",
               "use one from \"00:00\" to \"23:59\", or with seconds, \"23:59:59\"");
    const auto hour = take_digits(text, 2);
    const bool colon = take(text, ':');
    const auto minute = take_digits(text, 2);
    const bool has_seconds = take(text, ':');
    const auto second = has_seconds ? take_digits(text, 2) : 0;
    if (!hour || !colon || !minute || !second || !text.empty() || *hour > 23 || *minute > 59 ||
        *second > 59)
        return wrong;
    return hours(*hour) + minutes(*minute) + seconds(*second);
}

// "2026-11-11"
std::optional<std::chrono::year_month_day> parse_date(std::string_view text) {
    const auto year = take_digits(text, 4);
    const bool first = take(text, '-');
    const auto month = take_digits(text, 2);
    const bool second = take(text, '-');
    const auto day = take_digits(text, 2);
    if (!year || !first || !month || !second || !day || !text.empty())
        return std::nullopt;
    const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(*year)),
                                           std::chrono::month(*month), std::chrono::day(*day));
    return date.ok() ? std::optional(date) : std::nullopt;
}

void read_day(const Field& field, Schedule& schedule) {
    const auto text = field.string("\"fri\"");
    if (!text)
        return;
    bool is_new = false;
    const auto* const weekday = std::ranges::find(kWeekdays, *text);
    if (weekday != kWeekdays.end()) {
        is_new =
            schedule.weekdays.insert(static_cast<unsigned>(weekday - kWeekdays.begin())).second;
    } else if (const auto date = parse_date(*text)) {
        is_new = schedule.dates.insert(*date).second;
    } else {
        field.fail(in_quotes(*text) + " is no day",
                   "use mon, tue, wed, thu, fri, sat, sun, or a date such as \"2026-11-11\"");
        return;
    }
    if (!is_new)
        field.fail(in_quotes(*text) + " stands twice", "remove one");
}

void read_days(const Field& field, Schedule& schedule) {
    const auto items = field.items(kDaysExample);
    if (!items)
        return;
    if (items->empty())
        field.fail("is empty", "use " + std::string(kDaysExample));
    if (items->size() > kMostDates)
        field.fail("has too many days", "use at most " + std::to_string(kMostDates));
    for (const Field& item : *items)
        read_day(item, schedule);
}

void read_zone(const Field& field, Schedule& schedule) {
    schedule.zone = field.string("\"Europe/Berlin\"").value_or(schedule.zone);
    if (const auto zone = Zone::find(schedule.zone); !zone)
        field.fail(zone.error());
}

void read_limits(TableReader& table, Scope scope, ScaleRange scales, const Limits& own,
                 Limits& limits) {
    const std::string heading = "[service." + std::string(scope_name(scope)) + ']';
    const auto field = table.take(scope_name(scope));
    if (!field)
        return;
    auto inner = field->table(kChangeExample);
    if (!inner)
        return;
    for (const Dimension dimension : kDimensions) {
        const auto value = inner->take(dimension_name(dimension));
        if (!value)
            continue;
        const auto there = own.find(dimension);
        if (there == own.end()) {
            value->fail("the service itself has no such limit",
                        "give it one in " + heading + ", or remove this");
            continue;
        }
        std::optional<Limit> limit;
        if (scope != Scope::budget)
            limit = read_limit(*value, Rule{scope, dimension}, scales);
        else if (const auto bucket = read_budget_limit(*value, dimension))
            limit = *bucket;
        if (!limit)
            continue;
        // The gate's tables are made for one kind.
        if (limit->index() == there->second.index())
            limits.emplace(dimension, *limit);
        else
            value->fail(std::holds_alternative<StrictWindow>(*limit)
                            ? "is a window, and the service's own limit is a rate"
                            : "is a rate, and the service's own limit is a window",
                        "write both in the same way");
    }
    inner->finish();
}

Limits as_limits(const Budgets& budgets) {
    return {budgets.begin(), budgets.end()};
}

void read_changes(TableReader& table, ScaleRange scales, const Service& service,
                  Schedule& schedule) {
    Limits budget;
    read_limits(table, Scope::per_source, scales, service.per_source, schedule.per_source);
    read_limits(table, Scope::per_prefix, scales, service.per_prefix, schedule.per_prefix);
    read_limits(table, Scope::budget, scales, as_limits(service.budget), budget);
    for (const auto& [dimension, limit] : budget)
        schedule.budget.emplace(dimension, std::get<TokenBucket>(limit));
}

// Written by whoever puts the configuration in force.
void read_marks(const Field& field, Schedule& schedule) {
    const auto items = field.items("[\"budget.data\"]");
    if (!items)
        return;
    const std::set<Rule> rules = rules_of(schedule);
    for (const Field& item : *items) {
        const auto rule = item.parsed(parse_rule, "\"budget.data\"");
        if (!rule)
            continue;
        if (rules.contains(*rule))
            schedule.in_force.insert(*rule);
        else
            item.fail("is nothing that this schedule changes", "remove it");
    }
}

class SchedulesReader {
  public:
    SchedulesReader(ScaleRange scales, Service& service) : scales_(scales), service_(service) {}

    void read(const Field& field) {
        auto table = field.named_table("service " + in_quotes(service_.name) + ": schedule");
        if (!table)
            return;
        if (service_.schedules.size() == kMostSchedules) {
            field.fail("is one schedule too many", "use at most " + std::to_string(kMostSchedules));
            return;
        }
        Schedule schedule;
        schedule.name = table->require_name("flash-sale", names_).value_or("");
        if (const auto days = table->require("days", kDaysExample))
            read_days(*days, schedule);
        if (const auto from = table->require("from", kTimeExample))
            schedule.from = from->parsed(parse_time_of_day, kTimeExample).value_or(seconds(0));
        if (const auto to = table->require("to", "\"20:30\""))
            schedule.to = to->parsed(parse_time_of_day, "\"20:30\"").value_or(seconds(0));
        if (const auto zone = table->take("zone"))
            read_zone(*zone, schedule);
        read_changes(*table, scales_, service_, schedule);
        const auto marks = table->take(kInForce);
        table->finish();
        if (rules_of(schedule).empty())
            field.fail("changes nothing", "give it such as " + std::string(kChangeExample));
        if (marks)
            read_marks(*marks, schedule);
        refuse_overlap(field, schedule);
        service_.schedules.push_back(std::move(schedule));
    }

  private:
    void refuse_overlap(const Field& field, const Schedule& schedule) {
        const std::set<Rule> rules = rules_of(schedule);
        for (const Schedule& other : service_.schedules)
            for (const Rule rule : rules_of(other))
                if (rules.contains(rule) && overlap(other, schedule, wall_now())) {
                    field.fail(in_quotes(schedule.name) + " and " + in_quotes(other.name) +
                                   " change " + format_rule(rule) + " at the same time",
                               "let one end before the other begins, or change it in one of them");
                    return;
                }
    }

    ScaleRange scales_;
    Service& service_;
    std::set<std::string> names_;
};

}  // namespace

void read_schedules(const Field& tables, ScaleRange scales, Service& service) {
    SchedulesReader reader(scales, service);
    for (const Field& table : tables.tables("service.schedule"))
        reader.read(table);
    for (const Schedule& schedule : service.schedules)
        for (const Rule rule : schedule.in_force)
            put_limit(service, rule, limit_of(schedule, rule));
}

}  // namespace sluice
