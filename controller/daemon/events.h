// From the ring buffer to where events are read: the log, whoever follows, and `top`.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gate/tables.h"
#include "observe/event_line.h"
#include "observe/event_log.h"
#include "observe/heavy_sources.h"
#include "observe/line_sink.h"

struct ring_buffer;

namespace sluice {

class EventPump {
  public:
    // `where`: a file, "journal", "stdout"; empty: nowhere. `publish` gets every line, `counted`
    // every sampled packet that limits of its source counted, with the service's id.
    EventPump(const std::string& where, double lines_per_second,
              std::function<void(const std::string&)> publish,
              std::function<void(const IpAddress&, uint32_t)> counted);
    // Is told every event as well.
    void watch(std::function<void(const Event&)> watcher) { watcher_ = std::move(watcher); }

    // Follows this gate from now on, or none; another `number` means another gate. What to poll
    // for, or -1.
    int follow(const Tables* tables, uint64_t number);
    // Whatever is in the ring.
    void take();
    // Writes what came since the last time, as far as its budget goes.
    void flush();

    // Why lines are lost at the moment; empty where none are.
    [[nodiscard]] std::string error() const { return sink_.error ? sink_.error() : std::string(); }
    // Who the packets came from lately.
    [[nodiscard]] const HeavySources& heavy() const { return heavy_; }

  private:
    struct FreeRing {
        void operator()(ring_buffer* ring) const noexcept;
    };

    void take_one(const sluice_event& raw);

    LineSink sink_;
    EventLog log_;
    HeavySources heavy_;
    std::function<void(const IpAddress&, uint32_t)> counted_;
    std::function<void(const Event&)> watcher_;
    std::chrono::steady_clock::time_point flushed_ = std::chrono::steady_clock::now();
    uint64_t number_ = 0;
    std::optional<EventNames> names_;
    std::unique_ptr<ring_buffer, FreeRing> ring_;
};

}  // namespace sluice
