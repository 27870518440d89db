// What is remembered of a policy key of another limiter: an EXPIRE on it means "for a time", and
// when Redis has deleted it the value of before comes back, which Redis no longer has.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "policy/policy.h"

namespace sluice {

class RlMemory {
  public:
    using Clock = std::chrono::steady_clock;

    // What the key has now; with a time to live it is temporary. A value that stands for
    // `base_after` without one is the base.
    void see(const RlNumbers& numbers, std::optional<std::chrono::milliseconds> ttl,
             std::chrono::nanoseconds base_after, Clock::time_point now);
    // The key is gone. After a temporary value, and after one that was not there for long, the
    // base comes back. A base that was deleted is over; ten seconds later, as somebody may be
    // writing it anew.
    void see_nothing(Clock::time_point now);
    // What it has makes no sense: what was good last stays.
    void refuse(std::string why) { error_ = std::move(why); }

    // What holds. A temporary value ends on time, also where nobody can be asked.
    [[nodiscard]] std::optional<RlNumbers> value(Clock::time_point now) const;
    // When what holds ends; nothing where it is no temporary value.
    [[nodiscard]] std::optional<Clock::time_point> ends(Clock::time_point now) const;
    [[nodiscard]] const std::string& error() const { return error_; }

    // One line for a file, and back; nothing where the line makes no sense. A temporary value's
    // end is in it by the wall clock.
    [[nodiscard]] std::string format(Clock::time_point now, uint64_t wall_ms) const;
    static std::optional<RlMemory> parse(std::string_view line, Clock::time_point now,
                                         uint64_t wall_ms);

  private:
    std::optional<RlNumbers> base_;
    std::optional<RlNumbers> seen_;            // nothing: the key is gone, and the base holds
    Clock::time_point since_{};                // of what is seen, as long as it has no end
    std::optional<Clock::time_point> until_;   // of what is seen
    std::optional<Clock::time_point> missed_;  // since when it is gone, and may come back
    std::string error_;
};

// By the keys behind the prefix.
using RlBook = std::map<std::string, RlMemory>;

// On disk, so that a restart loses neither bases nor what holds until Redis answers.
class RlFile {
  public:
    explicit RlFile(const std::string& state_dir);
    // Empty where there is no file. One that is torn or foreign is set aside, which the error says.
    [[nodiscard]] Result<RlBook> load() const;
    // Writes nothing where it was the last to write the same.
    [[nodiscard]] Status save(const RlBook& book);
    // There is none any more.
    void forget();

  private:
    std::string path_;
    // Two clocks at one moment: what is written of an end is the same as long as the end is.
    RlMemory::Clock::time_point began_;
    uint64_t began_wall_ms_;
    std::string saved_;
};

}  // namespace sluice
