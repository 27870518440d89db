#include "redis/exchange.h"

#include <algorithm>
#include <thread>

namespace sluice::redis {

namespace {

// The script's text, a slot that moves twice meanwhile, and two to spare.
constexpr int kMostRounds = 5;
// While the keys of one command are on two servers neither has all of them.
constexpr std::chrono::milliseconds kPauseOfTryAgain{5};

}  // namespace

Exchange::Exchange(Topology& topology, std::span<const Command> commands, const Options& options,
                   Counts counts)
    : topology_(topology),
      commands_(commands),
      command_timeout_(options.command_timeout),
      counts_(counts),
      connect_deadline_(Clock::now() + options.connect_timeout),
      last_deadline_(connect_deadline_ + options.command_timeout),
      replies_(commands.size()) {}

Result<std::vector<Reply>> Exchange::run() {
    topology_.prepare(connect_deadline_);
    std::vector<Unit> waiting = find_homes();
    for (int round = 0; round < kMostRounds && !waiting.empty(); round++)
        waiting = ask(waiting);
    if (unanswered_ > 0)
        topology_.doubt();
    if (unanswered_ > 0 && unanswered_ == commands_.size())
        return last_error_;
    return std::move(replies_);
}

std::vector<Exchange::Unit> Exchange::find_homes() {
    std::vector<Unit> units;
    for (size_t i = 0; i < commands_.size(); i++) {
        if (i == 0 || commands_[i].key())
            units.push_back({.first = i});
        units.back().count++;
    }
    std::erase_if(units, [&](Unit& unit) {
        const auto link = topology_.home(commands_[unit.first].key());
        if (!link)
            fail(unit, link.error());
        else
            unit.link = *link;
        return !link;
    });
    return units;
}

std::vector<Exchange::Batch> Exchange::sort_by_server(const std::vector<Unit>& units) const {
    std::vector<Batch> batches;
    for (const Unit& unit : units) {
        auto batch = std::find_if(batches.begin(), batches.end(),
                                  [&](const Batch& b) { return b.link == unit.link; });
        if (batch == batches.end())
            batch = batches.insert(batch, Batch{.link = unit.link, .units = {}, .commands = {}});
        batch->units.push_back(unit);
        if (unit.asking)
            batch->commands.push_back({"ASKING"});
        const Command& first = commands_[unit.first];
        batch->commands.push_back(unit.with_text ? first.with_text() : first);
        const auto rest = commands_.subspan(unit.first + 1, unit.count - 1);
        batch->commands.insert(batch->commands.end(), rest.begin(), rest.end());
    }
    return batches;
}

std::vector<Exchange::Unit> Exchange::ask(const std::vector<Unit>& units) {
    std::vector<Batch> batches = sort_by_server(units);
    size_t left = batches.size();
    std::erase_if(batches, [&](const Batch& batch) {
        const Status ready = batch.link->prepare(share_of(connect_deadline_, left--));
        if (!ready)
            fail(batch, ready.error());
        return !ready;
    });
    const Deadline deadline = std::min(Clock::now() + command_timeout_, last_deadline_);
    std::erase_if(batches, [&](Batch& batch) {
        if (counts_ == Counts::once_replicated)
            ask_replicas(batch);
        const Status sent = batch.link->send(batch.commands, deadline);
        if (!sent)
            fail(batch, sent.error());
        return !sent;
    });
    std::vector<Unit> again;
    for (Batch& batch : batches)
        collect(batch, deadline, again);
    return again;
}

void Exchange::ask_replicas(Batch& batch) const {
    // The other half is for the way there and back.
    const auto patience = std::max(command_timeout_ / 2, std::chrono::milliseconds(1));
    batch.wanted_acks = batch.link->wanted_acks();
    if (batch.wanted_acks > 0)
        batch.commands.push_back(Command{"WAIT"}.add(batch.wanted_acks).add(patience.count()));
    batch.asks_role = batch.wanted_acks > 0 || batch.link->is_role_due();
    if (batch.asks_role)
        batch.commands.push_back({"ROLE"});
}

void Exchange::take_acks(const Batch& batch, std::span<const Reply> replies) {
    if (batch.asks_role)
        batch.link->learn_role(replies.back());
    if (batch.wanted_acks == 0)
        return;
    const Reply& waited = replies.front();
    const auto acks = waited.as_integer();
    if (acks && *acks >= static_cast<int64_t>(batch.wanted_acks))
        return;
    const Reply why = waited.is_error()
                          ? waited
                          : Reply::error("NOREPLICAS " + std::to_string(acks ? *acks : 0) +
                                         " replicas have the write, " +
                                         std::to_string(batch.wanted_acks) + " should");
    for (const Unit& unit : batch.units)
        for (size_t i = unit.first; i < unit.first + unit.count; i++)
            if (!replies_[i].is_error())
                replies_[i] = why;
}

void Exchange::collect(Batch& batch, Deadline deadline, std::vector<Unit>& again) {
    auto replies = batch.link->receive(batch.commands.size(), deadline);
    if (!replies)
        return fail(batch, replies.error());
    auto next = replies->begin();
    for (Unit& unit : batch.units) {
        if (unit.asking)
            ++next;
        const auto end = next + static_cast<ptrdiff_t>(unit.count);
        std::move(next, end, replies_.begin() + static_cast<ptrdiff_t>(unit.first));
        next = end;
        if (redirect(unit))
            again.push_back(unit);
    }
    if (next != replies->end())
        take_acks(batch, {next, replies->end()});
}

bool Exchange::redirect(Unit& unit) {
    const Reply& reply = replies_[unit.first];
    if (!reply.is_error())
        return false;
    if (reply.error_word() == "NOSCRIPT" && commands_[unit.first].script() != nullptr) {
        unit.with_text = true;
        return true;
    }
    if (reply.error_word() == "TRYAGAIN") {
        std::this_thread::sleep_for(kPauseOfTryAgain);
        return true;
    }
    if (is_out_of_service(reply))
        topology_.doubt();
    const auto detour = topology_.detour(reply);
    if (!detour)
        return false;
    unit.link = detour->link;
    unit.asking = detour->asking;
    return true;
}

void Exchange::fail(const Unit& unit, const Error& why) {
    for (size_t i = unit.first; i < unit.first + unit.count; i++)
        replies_[i] = Reply::error("UNREACHABLE " + why.message);
    unanswered_ += unit.count;
    last_error_ = why;
}

void Exchange::fail(const Batch& batch, const Error& why) {
    for (const Unit& unit : batch.units)
        fail(unit, why);
}

}  // namespace sluice::redis
