#include "redis/link.h"

#include <algorithm>

namespace sluice::redis {

namespace {

// The first replica is noticed within this; to ask costs Redis about 2 µs.
constexpr std::chrono::seconds kRolesApart(1);
// One part in so many of a round trip that is shown is the last one, as TCP has it.
constexpr int kSmoothing = 8;

}  // namespace

Link::Link(Connect connect) : connect_(std::move(connect)), breaker_(Clock::now(), random_seed()) {
    note_state();
}

Status Link::prepare(Deadline deadline) {
    // A server that went away while nothing was asked of it is no failure yet: nothing was lost.
    if (connection_ && !connection_->is_idle())
        connection_.reset();
    const bool admitted = breaker_.admit(Clock::now());
    note_state();
    if (!admitted)
        return make_error(ErrorCode::unreachable, breaker_.reason(),
                          "it is tried again by itself within " +
                              std::to_string(Breaker::kLongestPause.count() / 1000) + " s");
    if (connection_)
        return {};
    auto connected = connect_(deadline);
    if (!connected)
        return broken(connected.error());
    connection_ = std::move(connected->connection);
    health_.server = connected->endpoint.to_string();
    health_.run_id = connection_->run_id();
    health_.server_time_offset = connection_->time_offset();
    replicas_ = connection_->replicas();
    role_due_ = Clock::now() + kRolesApart;
    return {};
}

Status Link::send(std::span<const Command> commands, Deadline deadline) {
    sent_ = Clock::now();
    if (const Status sent = connection_->send(commands, deadline); !sent)
        return broken(sent.error().with_context(health_.server));
    return {};
}

Result<std::vector<Reply>> Link::receive(size_t count, Deadline deadline) {
    auto replies = connection_->receive(count, deadline);
    if (!replies)
        return broken(replies.error().with_context(health_.server));
    const auto out_of_service = std::find_if(replies->begin(), replies->end(), is_out_of_service);
    if (out_of_service != replies->end()) {
        (void)broken(out_of_service->check().error().with_context(health_.server));
        return replies;
    }
    health_.last_ok = Clock::now();
    note_round_trip();
    breaker_.succeeded(health_.last_ok);
    note_state();
    return replies;
}

void Link::learn_role(const Reply& role) {
    replicas_ = replicas_in(role);
    role_due_ = Clock::now() + kRolesApart;
}

void Link::start_anew() {
    connection_.reset();
    breaker_.end_pause(Clock::now());
}

Error Link::broken(const Error& why) {
    connection_.reset();
    breaker_.failed(Clock::now(), why.message);
    note_state();
    return why;
}

void Link::note_round_trip() {
    const auto last =
        std::chrono::duration_cast<std::chrono::microseconds>(health_.last_ok - sent_);
    auto& shown = health_.round_trip;
    shown = shown.count() == 0 ? last : shown + (last - shown) / kSmoothing;
}

void Link::note_state() {
    health_.state = breaker_.state();
    health_.reason = breaker_.reason();
    health_.since = breaker_.since();
}

}  // namespace sluice::redis
