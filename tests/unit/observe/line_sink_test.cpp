#include "observe/line_sink.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <string>

#include "base/file.h"
#include "temp_folder.h"

namespace sluice {

namespace {

// What a full disk does: it takes the beginning of a line.
class LargestFile {
  public:
    explicit LargestFile(rlim_t bytes) {
        ignored_ = ::signal(SIGXFSZ, SIG_IGN);
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{bytes, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~LargestFile() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        ::signal(SIGXFSZ, ignored_);
    }
    LargestFile(const LargestFile&) = delete;
    LargestFile& operator=(const LargestFile&) = delete;

  private:
    rlimit before_{};
    void (*ignored_)(int) = nullptr;
};

TEST(LineFile, NoLineFollowsHalfOfAnother) {
    const TempFolder folder;
    const std::string path = folder.path() + "/events.jsonl";
    LineFile file(path);
    EXPECT_TRUE(file.write("first\n"));
    {
        const LargestFile full(10);
        EXPECT_FALSE(file.write("second\n")) << "it is told once";
        EXPECT_TRUE(file.write("third\n")) << "then only counted";
        EXPECT_FALSE(file.error().empty());
    }
    EXPECT_TRUE(file.write("fourth\n"));
    EXPECT_TRUE(file.error().empty());
    EXPECT_EQ(read_file(path).value(), "first\nfourth\n");
}

}  // namespace

}  // namespace sluice
