// When schedules are due, by clocks that are set over hours and back, and what they change then.
#include "policy/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "observe/schedule_audit.h"
#include "operate/scheduled_config.h"
#include "policy/capacity.h"
#include "policy/parse.h"
#include "policy/service_change.h"
#include "policy/written_rate.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using std::chrono::days, std::chrono::seconds, std::chrono::sys_days;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// In UTC.
Instant at(int year, unsigned month, unsigned day, seconds time) {
    return sys_days(std::chrono::year(year) / std::chrono::month(month) / std::chrono::day(day)) +
           time;
}

Schedule schedule(const std::string& day, const std::string& from, const std::string& to,
                  const std::string& zone) {
    const auto policy = parse_policy(
        "[[service]]\nname = 'web'\nmatch = ['tcp/443']\n[service.budget]\ndata = '10/s'\n"
        "[[service.schedule]]\nname = 'sale'\ndays = ['" +
            day + "']\nfrom = '" + from + "'\nto = '" + to + "'\nzone = '" + zone +
            "'\nbudget = { data = '60/s' }\n",
        "x");
    EXPECT_TRUE(policy) << policy.error().message;
    return policy ? policy->services[0].schedules[0] : Schedule{};
}

struct Case {
    std::string what;
    Schedule schedule;
    Instant begin, end;
};

void PrintTo(const Case& one, std::ostream* out) {
    *out << one.what;
}

class ByTheClock : public testing::TestWithParam<Case> {};

TEST_P(ByTheClock, BeginsAndEndsAtTheseInstants) {
    const Case& one = GetParam();
    for (const Instant now : {one.begin - 10h, one.begin - 1s, one.begin, one.end - 1s}) {
        const auto found = occurrence_from(one.schedule, now);
        ASSERT_TRUE(found);
        EXPECT_EQ(found->begin, one.begin);
        EXPECT_EQ(found->end, one.end);
        EXPECT_EQ(found->has(now), now >= one.begin);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Zones, ByTheClock,
    testing::Values(
        Case{"UTC", schedule("fri", "19:55", "20:30:15", "UTC"), at(2026, 11, 13, 19h + 55min),
             at(2026, 11, 13, 20h + 30min + 15s)},
        Case{"a zone that never changes", schedule("fri", "19:55", "20:30", "Asia/Shanghai"),
             at(2026, 11, 13, 11h + 55min), at(2026, 11, 13, 12h + 30min)},
        Case{"a date", schedule("2026-11-11", "00:00", "00:00", "Asia/Shanghai"),
             at(2026, 11, 10, 16h), at(2026, 11, 11, 16h)},
        Case{"past midnight", schedule("fri", "23:00", "01:00", "America/New_York"),
             at(2026, 7, 11, 3h), at(2026, 7, 11, 5h)},
        Case{"a leap day", schedule("2028-02-29", "12:00", "13:00", "Europe/Berlin"),
             at(2028, 2, 29, 11h), at(2028, 2, 29, 12h)},
        // On 29 March 2026 clocks in Berlin go from 02:00 to 03:00 at 01:00 UTC.
        Case{"begins in an hour that is left out",
             schedule("sun", "02:30", "04:00", "Europe/Berlin"), at(2026, 3, 29, 1h),
             at(2026, 3, 29, 2h)},
        Case{"ends in an hour that is left out", schedule("sun", "01:30", "02:30", "Europe/Berlin"),
             at(2026, 3, 29, 30min), at(2026, 3, 29, 1h)},
        Case{"over midnight and a spring hour", schedule("sat", "22:00", "04:00", "Europe/Berlin"),
             at(2026, 3, 28, 21h), at(2026, 3, 29, 2h)},
        // On 25 October 2026 from 03:00 back to 02:00 at 01:00 UTC.
        Case{"within an hour that comes twice",
             schedule("2026-10-25", "02:30", "02:45", "Europe/Berlin"), at(2026, 10, 25, 30min),
             at(2026, 10, 25, 1h + 45min)},
        Case{"over midnight and an autumn hour",
             schedule("2026-10-24", "22:00", "04:00", "Europe/Berlin"), at(2026, 10, 24, 20h),
             at(2026, 10, 25, 3h)},
        // On 8 March and 1 November 2026.
        Case{"New York in spring", schedule("2026-03-08", "02:15", "03:30", "America/New_York"),
             at(2026, 3, 8, 7h), at(2026, 3, 8, 7h + 30min)},
        Case{"New York in autumn", schedule("2026-11-01", "01:30", "02:30", "America/New_York"),
             at(2026, 11, 1, 5h + 30min), at(2026, 11, 1, 7h + 30min)},
        // Half an hour: on 4 October 2026 from 02:00 to 02:30, on 5 April from 02:00 to 01:30.
        Case{"Lord Howe in spring", schedule("2026-10-04", "02:15", "03:00", "Australia/Lord_Howe"),
             at(2026, 10, 3, 15h + 30min), at(2026, 10, 3, 16h)},
        Case{"Lord Howe in autumn", schedule("2026-04-05", "01:45", "01:50", "Australia/Lord_Howe"),
             at(2026, 4, 4, 14h + 45min), at(2026, 4, 4, 15h + 20min)}));

TEST(Schedules, WithinAnHourThatIsLeftOutComeAgainTheWeekAfter) {
    const auto found =
        occurrence_from(schedule("sun", "02:15", "02:45", "America/New_York"), at(2026, 3, 7, 12h));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->begin, at(2026, 3, 15, 6h + 15min));
}

TEST(Schedules, OfDatesAreOverWhenTheLastOneIs) {
    const Schedule one = schedule("2026-11-11", "19:55", "20:30", "UTC");
    EXPECT_TRUE(occurrence_from(one, at(2020, 1, 1, 0h)));
    EXPECT_TRUE(occurrence_from(one, at(2026, 11, 11, 20h + 30min - 1s)));
    EXPECT_FALSE(occurrence_from(one, at(2026, 11, 11, 20h + 30min)));
}

// --- of a policy ---------------------------------------------------------------------------------

constexpr const char* kShop = R"(
[[service]]
name = "login"
match = ["tcp/443"]
[service.per_source]
data = "10/s"
[service.budget]
data = "20000/s"
capacity = { data = "50000/s" }
[[service.schedule]]
name = "flash-sale"
days = ["fri", "2026-11-11"]
from = "19:55"
to = "20:30"
zone = "Asia/Shanghai"
budget = { data = "60000/s" }
per_source = { data = "30/s" }
[[service.schedule]]
name = "night"
days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
from = "23:00"
to = "05:00"
budget = { data = "5000/s" }
)";

ConfigFile shop() {
    return {parse_policy(kShop, "x").value(), kShop, "x"};
}

std::string rate(const ConfigFile& config, Scope scope) {
    // What the gate keeps is its text.
    const auto again = parse_policy(config.text, "again");
    EXPECT_TRUE(again) << again.error().message;
    EXPECT_EQ(written_rate(*again, "login", {scope, Dimension::data}),
              written_rate(config.policy, "login", {scope, Dimension::data}));
    return written_rate(config.policy, "login", {scope, Dimension::data});
}

const Instant kSale = at(2026, 11, 13, 12h);  // a Friday, 20:00 in Shanghai
const Instant kNoon = at(2026, 11, 14, 12h);
const Instant kNight = at(2026, 11, 14, 23h);

TEST(Schedules, GiveTheServiceTheirNumbersAndGiveThemBack) {
    const ConfigFile before = with_schedules(shop(), kNoon).value();
    EXPECT_EQ(before.text, kShop) << "as it was written";
    const ConfigFile sale = with_schedules(before, kSale).value();
    EXPECT_EQ(rate(sale, Scope::budget), "60k/s");
    EXPECT_EQ(rate(sale, Scope::per_source), "30/s");
    // Of the gate's own text, as nobody else may know what it was.
    const ConfigFile night = with_schedules(sale, kNight).value();
    EXPECT_EQ(rate(night, Scope::budget), "5k/s");
    EXPECT_EQ(rate(night, Scope::per_source), "10/s");
    const ConfigFile after = with_schedules(night, kNoon).value();
    EXPECT_EQ(rate(after, Scope::budget), "20k/s");
    EXPECT_EQ(after.policy.services[0].schedules[0].in_force.size(), 0U);
    EXPECT_EQ(with_schedules(sale, kSale).value().text, sale.text) << "once is enough";
}

TEST(Schedules, OfAServiceThatIsNotInTheFileAreNobodys) {
    EXPECT_THAT(due_schedules(Policy{}, kSale), IsEmpty());
    EXPECT_FALSE(next_change(Policy{}, kSale));
}

TEST(Schedules, SayWhenTheyChangeNext) {
    const Policy policy = shop().policy;
    EXPECT_EQ(next_change(policy, kSale), at(2026, 11, 13, 12h + 30min));
    EXPECT_EQ(next_change(policy, at(2026, 11, 13, 12h + 30min)), at(2026, 11, 13, 23h));
    EXPECT_EQ(next_change(policy, kNight), at(2026, 11, 15, 5h));
    EXPECT_EQ(next_change(policy, at(2026, 11, 13, 6h)), at(2026, 11, 13, 11h + 55min));
}

TEST(Schedules, AnOverrideIsOverThem) {
    auto tree = read_toml(with_schedules(shop(), kSale)->text, "x").value();
    ASSERT_TRUE(change_service(tree, {"login", {{"budget.data", "7/s"}}}));
    const Policy policy = read_policy(tree, "x").value();
    EXPECT_EQ(written_rate(policy, "login", {Scope::budget, Dimension::data}), "7/s");
    EXPECT_EQ(written_rate(policy, "login", {Scope::per_source, Dimension::data}), "30/s");
    EXPECT_THAT(policy.services[0].schedules[0].in_force,
                ElementsAre(Rule{Scope::per_source, Dimension::data}));
}

TEST(Schedules, TurnsAreAuditedWithWhatWasAndWhatIs) {
    const Policy before = shop().policy, sale = with_schedules(shop(), kSale)->policy;
    const auto begins = schedule_turns(before, sale);
    ASSERT_EQ(begins.size(), 1U);
    EXPECT_EQ(begins[0].who.name, "schedule:flash-sale");
    EXPECT_EQ(begins[0].entry.action, "schedule begins");
    EXPECT_EQ(begins[0].entry.target, "login");
    EXPECT_EQ(begins[0].entry.before, "per_source.data 10/s, budget.data 20k/s");
    EXPECT_EQ(begins[0].entry.after, "per_source.data 30/s, budget.data 60k/s");
    EXPECT_EQ(begins[0].entry.reason, "Fri, 2026-11-11 19:55 to 20:30 Asia/Shanghai");
    const auto ends = schedule_turns(sale, before);
    ASSERT_EQ(ends.size(), 1U);
    EXPECT_EQ(ends[0].entry.action, "schedule ends");
    EXPECT_EQ(ends[0].entry.after, "per_source.data 10/s, budget.data 20k/s");
    EXPECT_THAT(schedule_turns(sale, sale), IsEmpty());
}

TEST(Schedules, CapacityBoundsThem) {
    EXPECT_THAT(above_capacity(shop().policy),
                ElementsAre("schedule flash-sale: login.budget.data = 60k/s is above its "
                            "capacity of 50k/s"));
}

// By the clock one ends when the other begins; in the night in which 02:30 comes twice they are due
// at once.
TEST(Schedules, TheLaterOneOfTwoThatMeetWhereAClockIsSetBackWins) {
    const auto policy = parse_policy(
        "[[service]]\nname = 'web'\nmatch = ['tcp/443']\n[service.budget]\ndata = '10/s'\n"
        "[[service.schedule]]\nname = 'early'\ndays = ['sun']\nfrom = '01:00'\nto = '02:30'\n"
        "zone = 'Europe/Berlin'\nbudget.data = '20/s'\n"
        "[[service.schedule]]\nname = 'late'\ndays = ['sun']\nfrom = '02:30'\nto = '04:00'\n"
        "zone = 'Europe/Berlin'\nbudget.data = '30/s'\n",
        "x");
    ASSERT_TRUE(policy) << policy.error().message;
    const auto due_at = [&](seconds time) {
        const auto due = due_schedules(*policy, at(2026, 10, 25, time));
        return due.size() == 1 ? due[0].schedule : std::to_string(due.size()) + " of them";
    };
    EXPECT_EQ(due_at(29min), "early");
    EXPECT_EQ(due_at(30min), "late");
    EXPECT_EQ(due_at(1h + 15min), "late") << "which the other one reaches, too";
}

}  // namespace
}  // namespace sluice
