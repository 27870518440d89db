// Captures of real and of hostile traffic, frame by frame. They lie outside of the repository:
// SLUICE_INPUTS names their folder, ../shared/inputs beside the source by default.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>

#include "capture_file.h"
#include "frame_source.h"
#include "gate_under_test.h"

namespace sluice {

namespace {

namespace fs = std::filesystem;

fs::path captures() {
    const char* inputs = std::getenv("SLUICE_INPUTS");
    return (inputs != nullptr ? fs::path(inputs)
                              : fs::path(SLUICE_SOURCE_DIR) / "../shared/inputs") /
           "pcap";
}

struct Capture {
    std::string name;
    std::vector<Bytes> frames;
};

constexpr size_t kShortest = 14;  // what a test run takes
constexpr size_t kLongest = 65'000;

// The frames of one file that a test run takes; nothing where there are none to be had.
std::optional<Capture> read_capture(const fs::path& path) {
    const auto name = path.lexically_relative(captures()).string();
    CaptureFile file = read_capture_file(path.string());
    if (!file.unreadable.empty()) {
        std::cout << "skipped: " << name << ": " << file.unreadable << "\n";
        return {};
    }
    std::erase_if(file.frames, [](const Bytes& frame) {
        return frame.size() < kShortest || frame.size() > kLongest;
    });
    return Capture{name, std::move(file.frames)};
}

class Captures : public GateUnderTest {
  protected:
    void SetUp() override {
        std::error_code ignored;
        if (!fs::is_directory(captures(), ignored))
            GTEST_SKIP() << "no captures in " << captures();
        GateUnderTest::SetUp();
        if (IsSkipped())
            return;
        auto sizes = usual_sizes();
        sizes.ban4_lines = sizes.rule_lines = 1U << 14;
        sizes.listing = 1U << 17;
        start(sizes);
        install(
            "[[service]]\nname = \"web\"\nmatch = [\"tcp/80\", \"tcp/443\"]\n"
            "per_source = { connections = { limit = 3, window = \"10s\" }, data = \"10/s\", "
            "packets = \"20/s\", bytes = \"100kB/s\", on_excess = { jail = \"10s\" } }\n"
            "per_prefix = { packets = \"30/s\" }\nbudget = { packets = \"1000/s\", data = "
            "\"500/s\" }\n"
            "[[service]]\nname = \"other\"\nper_source = { packets = \"10/s\", data = \"5/s\" }\n"
            "budget = { bytes = \"1MB/s\" }\n");
    }
    // Every frame of every file that can be read.
    template <class Visit>
    void for_each_capture(const Visit& visit) {
        std::vector<fs::path> paths;
        for (const auto& entry : fs::recursive_directory_iterator(captures()))
            if (entry.is_regular_file())
                paths.push_back(entry.path());
        std::sort(paths.begin(), paths.end());
        size_t files = 0, frames = 0;
        for (const auto& path : paths)
            if (const auto capture = read_capture(path)) {
                SCOPED_TRACE(capture->name);
                visit(*capture);
                ++files;
                frames += capture->frames.size();
            }
        std::cout << files << " files, " << frames << " frames\n";
    }
};

TEST_F(Captures, PassInObserveModeWhateverTheyAre) {
    set_mode("gate", Mode::observe);
    uint64_t sent = 0;
    for_each_capture([&](const Capture& capture) {
        for (const Bytes& frame : capture.frames) {
            EXPECT_TRUE(passes(frame));
            ++sent;
            advance(100us);
        }
    });
    const Counts counted = counts();
    EXPECT_FALSE(counted.contains("pass_internal"));
    uint64_t sum = 0;
    for (const auto& [verdict, packets] : counted) {
        std::cout << verdict << " " << packets << "\n";
        sum += packets;
    }
    EXPECT_EQ(sum, sent);
}

TEST_F(Captures, NothingFromABannedSourcePasses) {
    for_each_capture([&](const Capture& capture) {
        std::set<IpAddress> sources;
        for (const Bytes& frame : capture.frames)
            if (const auto source = source_of(frame))
                sources.insert(source->address);
        std::vector<RuleEntry> bans;
        for (const IpAddress& source : sources)
            bans.push_back({.prefix = Prefix::host(source), .forced = true});
        const auto done =
            rules().replace_list("capture", bans, {.reason = "", .actor = "", .forced = true});
        ASSERT_TRUE(done) << done.error().message;
        ASSERT_EQ(done->added + done->unchanged + done->changed, bans.size());

        for (size_t i = 0; i < capture.frames.size(); ++i) {
            const auto source = source_of(capture.frames[i]);
            const auto outcome = send(capture.frames[i]);
            const std::string expected = !source                          ? ""
                                         : source->is_neighbour_discovery ? "pass_essential"
                                                                          : "drop_banned";
            EXPECT_TRUE(outcome == expected ||
                        (!source && (outcome == "pass_not_ip" || outcome == "drop_malformed")))
                << "frame " << i << ": " << outcome;
        }
    });
}

// The same frames cut anywhere: no cut hides a sender whose whole IP header is there.
TEST_F(Captures, NoCutHidesABannedSource) {
    const auto everything =
        rules().ban(Prefix::parse("0.0.0.0/0").value(), {.ttl = {}, .forced = true});
    const auto everything6 =
        rules().ban(Prefix::parse("::/0").value(), {.ttl = {}, .forced = true});
    if (!everything || !everything6)
        GTEST_SKIP() << "the whole of a family cannot be banned";
    for_each_capture([&](const Capture& capture) {
        const size_t step = std::max<size_t>(1, capture.frames.size() / 20);
        for (size_t i = 0; i < capture.frames.size(); i += step)
            for (size_t length = kShortest;
                 length < std::min<size_t>(capture.frames[i].size(), 120); ++length) {
                const Bytes cut(capture.frames[i].begin(),
                                capture.frames[i].begin() + static_cast<std::ptrdiff_t>(length));
                const auto source = source_of(cut);
                if (!source || source->is_neighbour_discovery)
                    continue;
                ASSERT_FALSE(passes(cut)) << i << " cut to " << length;
            }
    });
}

}  // namespace

}  // namespace sluice
