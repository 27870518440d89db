#include "observe/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "observe/timestamp.h"
#include "temp_folder.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::chrono::hours kHour(1);

std::string line_of(std::chrono::seconds age, const std::string& target) {
    const auto ns = static_cast<uint64_t>(std::chrono::nanoseconds(age).count());
    return R"({"time":")" + format_timestamp(wall_clock_ns() - ns) + R"(","target":")" + target +
           "\"}\n";
}

AuditView read(const TempFolder& folder, std::chrono::nanoseconds since) {
    const auto view = AuditLog(folder.path()).read(since);
    EXPECT_TRUE(view);
    return view ? *view : AuditView{};
}

TEST(AuditLog, IsEmptyWithoutAFile) {
    const TempFolder folder;
    EXPECT_THAT(read(folder, kHour).lines, IsEmpty());
}

TEST(AuditLog, ReadsWhatItWrote) {
    const TempFolder folder;
    const AuditLog log(folder.path());
    ASSERT_TRUE(log.write({}, {"ban", "192.0.2.1/32", "", "1h", "first"}));
    ASSERT_TRUE(log.write({}, {"unban", "192.0.2.1/32", "1h", "", ""}));
    EXPECT_THAT(read(folder, kHour).lines,
                ElementsAre(HasSubstr(R"("reason":"first")"), HasSubstr(R"("action":"unban")")));
}

TEST(AuditLog, LeavesOutWhatIsOlderOrForeign) {
    const TempFolder folder;
    folder.write("audit.jsonl", line_of(2 * kHour, "old") + "no JSON\n[1]\n{\"time\":7}\n" +
                                    line_of(std::chrono::minutes(5), "new"));
    EXPECT_THAT(read(folder, kHour).lines, ElementsAre(HasSubstr("new")));
    EXPECT_THAT(read(folder, 3 * kHour).lines, SizeIs(2));
}

TEST(AuditLog, TellsWhetherItLookedFarEnough) {
    const TempFolder folder;
    const std::string line = line_of(std::chrono::minutes(30), "x");
    std::string text = line_of(2 * kHour, "first");
    while (text.size() <= AuditLog::kMostRead)
        text += line;
    folder.write("audit.jsonl", text);
    const AuditView all = read(folder, 3 * kHour);
    EXPECT_TRUE(all.left_out);
    EXPECT_THAT(all.lines.front(), HasSubstr("\"x\""));
    EXPECT_FALSE(read(folder, std::chrono::minutes(5)).left_out)
        << "what was left out is older than what was asked for";
}

}  // namespace
}  // namespace sluice
