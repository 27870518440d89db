#include "observe/event_log.h"

#include <algorithm>
#include <utility>

#include "observe/timestamp.h"

namespace sluice {

namespace {

// A second's worth may be saved up for what comes after a quiet time.
constexpr double kSavedSeconds = 1;
// Events that wait for the next flush: a burst of the ring buffer, and no more memory than that.
constexpr size_t kMostWaiting = 16'384;

std::string as_line(const nlohmann::ordered_json& json) {
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace

void EventLog::leave_out(const Event& event) {
    left_out_[{event.service, event.verdict}] += event.sampled_of;
    not_written_ += event.sampled_of;
}

void EventLog::add(const Untold& untold) {
    left_out_[{untold.service, untold.verdict}] += untold.packets;
    not_written_ += untold.packets;
}

void EventLog::add_before(const Untold& untold) {
    before_[{untold.service, untold.verdict}] += untold.packets;
}

void EventLog::tell(Packets& packets, const char* field) {
    for (const auto& [kind, count] : std::exchange(packets, {}))
        write_(as_line({{"time", format_timestamp(wall_clock_ns())},
                        {"service", kind.first},
                        {"verdict", kind.second},
                        {field, count}}));
}

void EventLog::add(Event event) {
    if (events_ >= kMostWaiting) {
        leave_out(event);
        return;
    }
    const auto [place, is_new] = place_.try_emplace(event.source, waiting_.size());
    if (is_new)
        waiting_.push_back({event.source, {}});
    waiting_[place->second].second.push_back(std::move(event));
    events_++;
}

void EventLog::flush(std::chrono::nanoseconds elapsed) {
    const double seconds = std::chrono::duration<double>(elapsed).count();
    lines_ = std::min(lines_ + seconds * lines_per_second_, kSavedSeconds * lines_per_second_);
    for (size_t turn = 0; events_ > 0; ++turn) {
        for (auto& [source, events] : waiting_) {
            if (turn >= events.size())
                continue;
            events_--;
            if (lines_ < 1) {
                leave_out(events[turn]);
                continue;
            }
            lines_ -= 1;
            write_(as_line(events[turn].to_json()));
        }
    }
    waiting_.clear();
    place_.clear();
    tell(before_, "before");
    tell(left_out_, "not_written");
}

}  // namespace sluice
