// One HTTP client with its own address: asks for a page now and then, or as fast as it can.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "net/address.h"

namespace sluice::lab {

using Clock = std::chrono::steady_clock;

struct VisitPlan {
    uint16_t port = 80;
    std::string path = "/";
    bool keep_alive = false;
    Clock::duration interval{};  // from the start of a page to the start of the next; 0: at once
    Clock::duration timeout = std::chrono::seconds(3);
};

enum class Failure { connect, timeout, reset, status, protocol };
std::string_view failure_name(Failure failure);
inline constexpr size_t kFailures = 5;

struct Tally {
    uint64_t ok = 0;
    std::array<uint64_t, kFailures> failed{};  // by Failure
    std::vector<float> latencies_ms;           // of the pages that came

    [[nodiscard]] uint64_t failures() const;
    void add(const Tally& other);
};

class Visitor {
  public:
    // Counts only pages that start at or after `count_from`.
    Visitor(const VisitPlan& plan, IpAddress source, IpAddress target, Clock::time_point first_page,
            Clock::time_point count_from);

    // Starts a page that is due, unless `closing`, and gives up one that takes too long.
    // The descriptor joins `epoll` with `index` as its data.
    void on_time(Clock::time_point now, bool closing, int epoll, uint64_t index);
    void on_event(Clock::time_point now);

    [[nodiscard]] bool busy() const { return state_ != State::resting; }
    [[nodiscard]] const IpAddress& source() const { return source_; }
    [[nodiscard]] const Tally& tally() const { return tally_; }

  private:
    enum class State { resting, connecting, receiving };

    void start_page(Clock::time_point now, int epoll, uint64_t index);
    bool open_connection(int epoll, uint64_t index);
    void send_request();
    void receive(Clock::time_point now);
    // Whether the answer in answer_ is complete; sets the rest from its header.
    bool parse_answer();
    void finish(Clock::time_point now);
    void fail(Failure failure, Clock::time_point now);

    const VisitPlan& plan_;
    IpAddress source_;
    IpAddress target_;
    std::string request_;
    Clock::time_point count_from_;
    Clock::time_point next_page_;
    Clock::time_point page_start_;
    Tally tally_;

    State state_ = State::resting;
    UniqueFd socket_;
    bool reused_ = false;  // the connection served a page before
    bool retry_ = false;   // the server closed a reused connection: one new try, as browsers do
    std::string answer_;
    size_t header_size_ = 0;
    size_t body_size_ = 0;
    size_t received_ = 0;
    int status_ = 0;
    bool server_closes_ = false;
};

}  // namespace sluice::lab
