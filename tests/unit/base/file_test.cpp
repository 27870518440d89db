#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "base/unique_fd.h"
#include "temp_folder.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr InputFile kFile{.most_bytes = 10, .mend = "shorten it"};
constexpr InputFile kFileOrPipe{.most_bytes = 10, .mend = "shorten it", .or_a_pipe = true};

TEST(InputFile, HasALimit) {
    const TempFolder folder;
    EXPECT_EQ(read_input_file(folder.write("full", "0123456789"), kFile).value(), "0123456789");
    const auto path = folder.write("more", "0123456789a");
    const auto more = read_input_file(path, kFile);
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().message, "read " + path + ": has more than 10 bytes");
    EXPECT_EQ(more.error().hint, "shorten it");
}

TEST(InputFile, FilesOfTheKernelHaveNoSizeAndAreReadWhole) {
    EXPECT_THAT(read_file("/proc/self/status").value(), HasSubstr("Pid:"));
}

TEST(InputFile, DevicesAndFoldersAreRefused) {
    for (const char* device : {"/dev/zero", "/dev/full", "/dev/random", "/dev/null"})
        for (const InputFile& wanted : {kFile, kFileOrPipe})
            EXPECT_THAT(read_input_file(device, wanted).error().message, HasSubstr("is a device"));
    EXPECT_THAT(read_input_file("/tmp", kFile).error().message,
                HasSubstr("is a directory, not a file"));
    EXPECT_EQ(read_input_file("/nonexistent", kFile).error().code, ErrorCode::not_found);
}

TEST(InputFile, APipeWithoutAWriterHoldsNobody) {
    const TempFolder folder;
    const std::string path = folder.path() + "/pipe";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_THAT(read_input_file(path, kFile).error().message, HasSubstr("is a pipe"));
    EXPECT_THAT(read_file(path).error().message, HasSubstr("is a pipe"));
    EXPECT_EQ(read_input_file(path, kFileOrPipe).value(), "");
}

TEST(InputFile, APipeIsReadToItsEndAndToItsLimit) {
    for (const std::string text : {"short", "more than the limit"}) {
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        const UniqueFd reader(ends[0]);
        std::thread writer([&text, end = ends[1]] {
            const UniqueFd closed_at_the_end(end);
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            (void)!::write(end, text.data(), text.size());
        });
        const auto read = read_input_file("/dev/fd/" + std::to_string(ends[0]), kFileOrPipe);
        writer.join();
        if (text.size() <= kFileOrPipe.most_bytes)
            EXPECT_EQ(read.value(), text);
        else
            EXPECT_FALSE(read);
    }
}

}  // namespace
}  // namespace sluice
