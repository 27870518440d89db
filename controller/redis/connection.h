// One server, logged in to, whose role has been seen.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "redis/wire.h"

namespace sluice::redis {

// How to get in: the same for all servers of a target.
struct Access {
    std::string username;
    std::string password_file;  // empty: no log-in
    unsigned database = 0;
    std::optional<TlsContext> tls;
};

enum class Role { master, any };

class Connection {
  public:
    // Reaches it, logs in, and finds out who it is. A replica is refused as READONLY where a
    // master is wanted.
    static Result<Connection> open(const Endpoint& endpoint, const Access& access, Role wanted,
                                   Deadline deadline);

    // A pipeline: send, then receive as many. After an error of either the connection is of no
    // use, since a late answer would be taken for that of a later command: drop it.
    Status send(std::span<const Command> commands, Deadline deadline) {
        return wire_.send(commands, run_id_, deadline);
    }
    Result<std::vector<Reply>> receive(size_t count, Deadline deadline) {
        return wire_.receive(count, deadline);
    }
    // As Wire's: a connection that is not idle between two pipelines is of no use either.
    [[nodiscard]] bool is_idle() { return wire_.is_idle(); }

    [[nodiscard]] const std::string& run_id() const { return run_id_; }
    // That it had when this connection was made.
    [[nodiscard]] size_t replicas() const { return replicas_; }
    // Its clock less this host's, with half the round trip of the log-in as error.
    [[nodiscard]] std::chrono::microseconds time_offset() const { return time_offset_; }

  private:
    explicit Connection(Wire wire) : wire_(std::move(wire)) {}

    Status introduce(const Access& access, Role wanted, Deadline deadline);
    Status learn_run_id(const Reply& info);
    Status learn_time(const Reply& time, std::chrono::system_clock::time_point asked);

    Wire wire_;
    std::string run_id_;
    size_t replicas_ = 0;
    std::chrono::microseconds time_offset_{};
};

// Replicas that follow the server whose answer to ROLE this is, and have said so: one that has just
// come acknowledges nothing in its first second. None of one that is no master.
size_t replicas_in(const Reply& role);

// AUTH with the password that the file holds now. Redis repeats the words of a command that it does
// not know, here a password: only what it says for certain about a wrong one is passed on.
Status log_in(Wire& wire, const Access& access, Deadline deadline);

}  // namespace sluice::redis
