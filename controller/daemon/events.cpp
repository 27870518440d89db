#include "daemon/events.h"

#include <bpf/libbpf.h>

#include <cstring>
#include <utility>

#include "base/log.h"

namespace sluice {

void EventPump::FreeRing::operator()(ring_buffer* ring) const noexcept {
    ring_buffer__free(ring);
}

EventPump::EventPump(const std::string& where, double lines_per_second,
                     std::function<void(const std::string&)> publish,
                     std::function<void(const IpAddress&, uint32_t)> counted)
    : sink_(where.empty() ? LineSink{}
                          : line_sink(where,
                                      [](const Error& error) {
                                          log(LogLevel::error, "events: " + error.message);
                                      })),
      log_(lines_per_second,
           [write = sink_.write, publish = std::move(publish)](const std::string& line) {
               if (write)
                   write(line);
               publish(line);
           }),
      counted_(std::move(counted)) {}

int EventPump::follow(const Tables* tables, uint64_t number) {
    if (number == number_)
        return ring_ ? ring_buffer__epoll_fd(ring_.get()) : -1;
    ring_.reset();
    names_.reset();
    number_ = number;
    if (tables == nullptr)
        return -1;
    names_.emplace(*tables);
    ring_.reset(ring_buffer__new(
        tables->events.get(),
        [](void* pump, void* data, size_t size) {
            sluice_event raw{};
            if (size == sizeof(raw)) {
                std::memcpy(&raw, data, sizeof(raw));
                static_cast<EventPump*>(pump)->take_one(raw);
            }
            return 0;
        },
        this, nullptr));
    if (!ring_)
        log(LogLevel::error,
            "events cannot be read: " + from_errno(errno, "the ring buffer").message);
    return ring_ ? ring_buffer__epoll_fd(ring_.get()) : -1;
}

void EventPump::take_one(const sluice_event& raw) {
    Event event = names_->name(raw);
    heavy_.add(event, HeavySources::Clock::now());
    if (raw.verdict == SLUICE_pass_within || raw.verdict > SLUICE_drop_jailed)
        counted_(event.source, raw.service);
    if (watcher_)
        watcher_(event);
    // The log is about what was dropped.
    if (!event.passed)
        log_.add(std::move(event));
}

void EventPump::take() {
    if (ring_)
        (void)ring_buffer__consume(ring_.get());
}

void EventPump::flush() {
    take();
    if (names_) {
        for (const Untold& untold : names_->settle())
            log_.add(untold);
        for (const Untold& untold : names_->before())
            log_.add_before(untold);
    }
    const auto now = std::chrono::steady_clock::now();
    log_.flush(now - flushed_);
    flushed_ = now;
}

}  // namespace sluice
