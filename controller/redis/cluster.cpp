#include "redis/cluster.h"

#include <algorithm>
#include <charconv>

#include "redis/slot.h"

namespace sluice::redis {

namespace {

// While a node is down the map is in doubt with each run, and changes after seconds.
constexpr std::chrono::milliseconds kAskAgainAfter{100};

// "MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381".
struct Redirection {
    size_t slot = 0;
    Endpoint node;
};

std::optional<Redirection> parse_redirection(std::string_view message) {
    const size_t slot_at = message.find(' ') + 1;
    const size_t node_at = message.find(' ', slot_at) + 1;
    Redirection result;
    const auto read =
        std::from_chars(message.data() + slot_at, message.data() + node_at, result.slot);
    const auto node = parse_redirect(message.substr(node_at));
    // A node that does not know its own name leaves it out; the next map has it.
    if (read.ec != std::errc{} || result.slot >= kSlots || !node || node->host.empty())
        return std::nullopt;
    result.node = *node;
    return result;
}

int badness(BreakerState state) {
    switch (state) {
        case BreakerState::closed:
            return 0;
        case BreakerState::half_open:
            return 1;
        case BreakerState::open:
            return 2;
    }
    return 2;
}

}  // namespace

Cluster::Cluster(Target target, Access access)
    : seeds_(std::move(target.endpoints)),
      access_(std::move(access)),
      slots_(kSlots),
      discovery_(Clock::now(), random_seed()) {}

void Cluster::prepare(Deadline deadline) {
    const auto now = Clock::now();
    if (!in_doubt_ || now - asked_at_ < kAskAgainAfter || !discovery_.admit(now))
        return;
    const auto ranges = ask_somebody(deadline);
    asked_at_ = Clock::now();
    if (!ranges) {
        discovery_.failed(asked_at_, ranges.error().message);
        return;
    }
    discovery_.succeeded(asked_at_);
    adopt(*ranges);
    in_doubt_ = false;
}

std::vector<Endpoint> Cluster::whom_to_ask() {
    std::vector<Endpoint> healthy, others;
    for (const auto& [address, node] : nodes_)
        (node.link.health().state == BreakerState::closed ? healthy : others)
            .push_back(node.endpoint);
    // Not always the same one, whose map may be old.
    if (!healthy.empty())
        std::rotate(healthy.begin(),
                    healthy.begin() + static_cast<ptrdiff_t>(times_asked_++ % healthy.size()),
                    healthy.end());
    healthy.insert(healthy.end(), seeds_.begin(), seeds_.end());
    healthy.insert(healthy.end(), others.begin(), others.end());
    return healthy;
}

Result<std::vector<Cluster::Range>> Cluster::ask_somebody(Deadline deadline) {
    const std::vector<Endpoint> nodes = whom_to_ask();
    Error last;
    for (size_t left = nodes.size(); left > 0; left--) {
        const Endpoint& node = nodes[nodes.size() - left];
        // One share more, for the links.
        auto ranges = ask(node, share_of(deadline, left + 1));
        if (ranges)
            return ranges;
        last = ranges.error().with_context(node.to_string());
    }
    return last;
}

Result<std::vector<Cluster::Range>> Cluster::ask(const Endpoint& node, Deadline deadline) {
    // A replica knows the map as well.
    auto connection = Connection::open(node, access_, Role::any, deadline);
    if (!connection)
        return connection.error();
    const Command command{"CLUSTER", "SLOTS"};
    if (const Status sent = connection->send(std::span(&command, 1), deadline); !sent)
        return sent.error();
    const auto replies = connection->receive(1, deadline);
    if (!replies)
        return replies.error();
    return read_ranges(replies->front(), node);
}

Result<std::vector<Cluster::Range>> Cluster::read_ranges(const Reply& reply, const Endpoint& from) {
    const auto entries = reply.as_array();
    if (!entries)
        return entries.error();
    std::vector<Range> ranges;
    for (const Reply& entry : *entries) {
        // first, last, master: (host, port, …), replica, …
        const auto parts = entry.as_array();
        if (!parts || parts->size() < 3)
            return failed("CLUSTER SLOTS of Redis makes no sense");
        const auto first = (*parts)[0].as_integer();
        const auto last = (*parts)[1].as_integer();
        const auto master = (*parts)[2].as_array();
        if (!first || !last || *first < 0 || *last < *first ||
            *last >= static_cast<int64_t>(kSlots) || !master || master->size() < 2)
            return failed("CLUSTER SLOTS of Redis makes no sense");
        const auto host = (*master)[0].as_text();
        const auto port = (*master)[1].as_integer();
        if (!port || *port < 1 || *port > 65'535)
            return failed("CLUSTER SLOTS of Redis makes no sense");
        // One that does not know its own name is where it was asked.
        const bool has_name = host && !host->empty() && *host != "?";
        ranges.push_back(
            {static_cast<uint16_t>(*first),
             static_cast<uint16_t>(*last),
             {has_name ? std::string(*host) : from.host, static_cast<uint16_t>(*port), {}}});
    }
    if (ranges.empty())
        return make_error(ErrorCode::unreachable, "no slot of the cluster has a node",
                          "make it one: redis-cli --cluster create, or --cluster fix");
    return ranges;
}

void Cluster::adopt(const std::vector<Range>& ranges) {
    std::fill(slots_.begin(), slots_.end(), nullptr);
    std::vector<const Link*> in_use;
    for (const Range& range : ranges) {
        Link* const link = link_to(range.master);
        std::fill(slots_.begin() + range.first, slots_.begin() + range.last + 1, link);
        in_use.push_back(link);
    }
    std::erase_if(nodes_, [&](const auto& node) {
        return std::find(in_use.begin(), in_use.end(), &node.second.link) == in_use.end();
    });
}

Link* Cluster::link_to(const Endpoint& endpoint) {
    const std::string address = endpoint.to_string();
    if (const auto known = nodes_.find(address); known != nodes_.end())
        return &known->second.link;
    const auto connect = [this, endpoint, address](Deadline deadline) -> Result<Connected> {
        auto connection = Connection::open(endpoint, access_, Role::master, deadline);
        if (!connection)
            return connection.error().with_context(address);
        return Connected{*std::move(connection), endpoint};
    };
    return &nodes_.emplace(address, Node{endpoint, Link(connect)}).first->second.link;
}

Result<Link*> Cluster::home(std::optional<std::string_view> key) {
    if (nodes_.empty())
        return make_error(ErrorCode::unreachable, discovery_.reason());
    if (!key)
        return &nodes_.begin()->second.link;
    const size_t slot = slot_of(*key);
    if (slots_[slot] == nullptr) {
        in_doubt_ = true;
        return make_error(ErrorCode::unreachable,
                          "slot " + std::to_string(slot) + " of the cluster has no node",
                          "look why: redis-cli --cluster check");
    }
    return slots_[slot];
}

std::optional<Detour> Cluster::detour(const Reply& reply) {
    const bool moved = reply.error_word() == "MOVED";
    if (!moved && reply.error_word() != "ASK")
        return std::nullopt;
    // Who has moved one slot is about to move others.
    in_doubt_ = in_doubt_ || moved;
    const auto to = parse_redirection(reply.error_text());
    if (!to)
        return std::nullopt;
    Link* const link = link_to(to->node);
    if (moved)
        slots_[to->slot] = link;
    return Detour{link, !moved};
}

Health Cluster::health() const {
    if (nodes_.empty()) {
        Health health;
        health.state = discovery_.state();
        health.reason = discovery_.reason();
        health.since = discovery_.since();
        return health;
    }
    const auto worst =
        std::max_element(nodes_.begin(), nodes_.end(), [](const auto& a, const auto& b) {
            return badness(a.second.link.health().state) < badness(b.second.link.health().state);
        });
    return worst->second.link.health();
}

}  // namespace sluice::redis
