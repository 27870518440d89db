// Which events are written: a budget of lines a second, shared fairly among sources.
//
// A flood is thousands of events of few sources; the one event of a user who was dropped by mistake
// is worth more than all of them. Lines of an interval are therefore dealt out one a source in
// turn. What is not written is counted, so that what is written and these counts add up to the
// counters.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "observe/event_line.h"

namespace sluice {

class EventLog {
  public:
    using Write = std::function<void(const std::string& line)>;

    EventLog(double lines_per_second, Write write)
        : lines_per_second_(lines_per_second), write_(std::move(write)) {}

    void add(Event event);
    // What no event stands for.
    void add(const Untold& untold);
    // What was counted before the first event: told once, apart.
    void add_before(const Untold& untold);
    // Deals out the lines of the time since the last call.
    void flush(std::chrono::nanoseconds elapsed);

    // Packets behind events that were not written, since the start.
    [[nodiscard]] uint64_t not_written() const { return not_written_; }

  private:
    // (service, verdict)
    using Packets = std::map<std::pair<std::string, std::string>, uint64_t>;

    void leave_out(const Event& event);
    void tell(Packets& packets, const char* field);

    double lines_per_second_;
    Write write_;
    double lines_ = 0;                                               // left from before
    std::vector<std::pair<IpAddress, std::vector<Event>>> waiting_;  // by source, as they came
    std::map<IpAddress, size_t> place_;
    size_t events_ = 0;
    Packets before_;
    Packets left_out_;
    uint64_t not_written_ = 0;
};

}  // namespace sluice
