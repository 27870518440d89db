// One run of commands: to the servers that have their keys, all at once, and again where Redis
// says so.
#pragma once

#include <span>
#include <vector>

#include "redis/command.h"
#include "redis/redis.h"
#include "redis/topology.h"

namespace sluice::redis {

// When a write counts as done.
enum class Counts { at_once, once_replicated };

class Exchange {
  public:
    Exchange(Topology& topology, std::span<const Command> commands, const Options& options,
             Counts counts);

    Result<std::vector<Reply>> run();

  private:
    // A command with a key, and those without behind it: they go and are repeated together.
    struct Unit {
        size_t first = 0;
        size_t count = 0;
        Link* link = nullptr;
        bool asking = false;
        bool with_text = false;  // of the script, which the server does not know
    };
    // What one server gets in one round.
    struct Batch {
        Link* link = nullptr;
        std::vector<Unit> units;
        std::vector<Command> commands;
        size_t wanted_acks = 0;  // of replicas; with it a WAIT follows the commands
        bool asks_role = false;  // with it a ROLE is the last
    };

    [[nodiscard]] std::vector<Unit> find_homes();
    [[nodiscard]] std::vector<Batch> sort_by_server(const std::vector<Unit>& units) const;
    // The units that have to be repeated.
    [[nodiscard]] std::vector<Unit> ask(const std::vector<Unit>& units);
    // Behind the commands, so that one wait is for all of them.
    void ask_replicas(Batch& batch) const;
    void take_acks(const Batch& batch, std::span<const Reply> replies);
    void collect(Batch& batch, Deadline deadline, std::vector<Unit>& again);
    // Changes the unit to what is to be tried next; false where its reply is its answer.
    [[nodiscard]] bool redirect(Unit& unit);
    void fail(const Unit& unit, const Error& why);
    void fail(const Batch& batch, const Error& why);

    Topology& topology_;
    std::span<const Command> commands_;
    std::chrono::milliseconds command_timeout_;
    Counts counts_;
    Deadline connect_deadline_;
    Deadline last_deadline_;
    std::vector<Reply> replies_;
    size_t unanswered_ = 0;  // commands
    Error last_error_;
};

}  // namespace sluice::redis
