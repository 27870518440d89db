#include "redis/sentinels.h"

#include <algorithm>
#include <charconv>

namespace sluice::redis {

namespace {

constexpr std::string_view kSwitched = "+switch-master";
// Meanwhile a failover is seen only by what it does to the connection.
constexpr std::chrono::seconds kListenAgainAfter{1};

// The value behind `name` in a list of names and values; empty where there is none.
std::string_view value_of(std::span<const Reply> fields, std::string_view name) {
    for (size_t i = 0; i + 1 < fields.size(); i += 2) {
        const auto key = fields[i].as_text();
        const auto value = fields[i + 1].as_text();
        if (key && value && *key == name)
            return *value;
    }
    return {};
}

uint64_t to_number(std::string_view text) {
    uint64_t number = 0;
    (void)std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

std::string_view text_or_nothing(const Reply& reply) {
    const auto text = reply.as_text();
    return text ? *text : std::string_view();
}

}  // namespace

Sentinels::Sentinels(Target target, const Access& access)
    : target_(std::move(target)), access_(access) {}

Result<Sentinels::Nomination> Sentinels::ask_on(Wire wire, Deadline deadline) const {
    const std::vector<Command> commands = {{"SENTINEL", "MASTER", target_.master_name},
                                           {"SUBSCRIBE", kSwitched}};
    auto replies = wire.ask(commands, deadline);
    // It may have a password of its own, or none: only one that asks gets ours.
    if (replies && replies->front().error_word() == "NOAUTH" && !access_.password_file.empty()) {
        if (const Status logged_in = log_in(wire, access_, deadline); !logged_in)
            return logged_in.error();
        replies = wire.ask(commands, deadline);
    }
    if (!replies)
        return replies.error();
    if (const Status listens = replies->back().check(); !listens && replies->front().check())
        return listens.error();
    const auto fields = replies->front().as_array();
    if (!fields)
        return fields.error();
    const auto master = parse_redirect(std::string(value_of(*fields, "ip")) + ':' +
                                       std::string(value_of(*fields, "port")));
    if (!master)
        return master.error();
    return Nomination{*master, to_number(value_of(*fields, "config-epoch")), std::move(wire)};
}

Result<Sentinels::Nomination> Sentinels::ask(const Endpoint& sentinel, Deadline deadline) const {
    auto stream = Stream::open(sentinel, access_.tls ? &*access_.tls : nullptr, deadline);
    if (!stream)
        return stream.error().with_context("sentinel " + sentinel.to_string());
    auto nomination = ask_on(Wire(*std::move(stream)), deadline);
    if (!nomination)
        return nomination.error().with_context("sentinel " + sentinel.to_string());
    return nomination;
}

std::vector<Sentinels::Nomination> Sentinels::ask_all(Deadline deadline) {
    std::vector<Nomination> nominations;
    for (size_t left = target_.endpoints.size(); left > 0; left--) {
        const Endpoint& sentinel = target_.endpoints[target_.endpoints.size() - left];
        // One share more, for the master.
        auto nomination = ask(sentinel, share_of(deadline, left + 1));
        if (nomination)
            nominations.push_back(*std::move(nomination));
        else
            last_error_ = nomination.error();
    }
    // A sentinel that was cut off, or comes back, may still name a master of yesterday.
    std::stable_sort(nominations.begin(), nominations.end(),
                     [](const Nomination& a, const Nomination& b) { return a.epoch > b.epoch; });
    return nominations;
}

Result<Connected> Sentinels::connect_master(Deadline deadline) {
    std::vector<Nomination> nominations = ask_all(deadline);
    size_t left = nominations.size();
    for (Nomination& nomination : nominations) {
        auto connection =
            Connection::open(nomination.master, access_, Role::master, share_of(deadline, left--));
        // The newest is listened to even where its master does not answer: a switch is near then.
        if (!watched_ || connection)
            watched_ = std::move(nomination.wire);
        if (connection) {
            master_ = nomination.master;
            epoch_ = nomination.epoch;
            return Connected{*std::move(connection), master_};
        }
        last_error_ = connection.error().with_context(nomination.master.to_string());
    }
    return last_error_;
}

bool Sentinels::listen_again(Deadline deadline) {
    const auto now = Clock::now();
    if (now < next_try_)
        return false;
    next_try_ = now + kListenAgainAfter;
    const Endpoint& sentinel = target_.endpoints[next_sentinel_++ % target_.endpoints.size()];
    auto nomination = ask(sentinel, share_of(deadline, target_.endpoints.size() + 1));
    if (!nomination)
        return false;
    watched_ = std::move(nomination->wire);
    return nomination->epoch > epoch_ && nomination->master != master_;
}

bool Sentinels::tells_of_move(const Reply& message) const {
    const auto parts = message.as_array();
    // "message", the channel, "NAME OLD-HOST OLD-PORT HOST PORT"
    return parts && parts->size() == 3 && text_or_nothing((*parts)[1]) == kSwitched &&
           text_or_nothing((*parts)[2]).starts_with(target_.master_name + ' ');
}

bool Sentinels::master_moved(Deadline deadline) {
    if (!watched_)
        return listen_again(deadline);
    bool moved = false;
    for (;;) {
        const auto message = watched_->receive(Deadline());
        if (!message)
            watched_.reset();
        if (!message || !*message)
            return moved;
        moved = moved || tells_of_move(**message);
    }
}

}  // namespace sluice::redis
