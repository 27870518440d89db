// The way to one server that is kept up: connected when it is needed, dropped when in doubt,
// guarded by a breaker.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "redis/breaker.h"
#include "redis/connection.h"
#include "redis/redis.h"

namespace sluice::redis {

// A connection, and to whom.
struct Connected {
    Connection connection;
    Endpoint endpoint;
};

class Link {
  public:
    using Connect = std::function<Result<Connected>(Deadline)>;

    explicit Link(Connect connect);

    // A connection that is up as far as this side can see: the one that is kept, or a new one.
    // While the breaker pauses, its reason.
    Status prepare(Deadline deadline);
    // Both after prepare(); either may fail, and then there is nothing to receive.
    Status send(std::span<const Command> commands, Deadline deadline);
    Result<std::vector<Reply>> receive(size_t count, Deadline deadline);

    // How many replicas are to have a write before it counts: half of those that follow, rounded
    // up. Replicas come and go, so whoever waits for them asks the server again with ROLE, behind
    // each wait and where it is due, and hands in the answer.
    [[nodiscard]] size_t wanted_acks() const { return (replicas_ + 1) / 2; }
    [[nodiscard]] bool is_role_due() const { return Clock::now() >= role_due_; }
    void learn_role(const Reply& role);

    // Another server is to be found at once: away with this one, and with the breaker's pause.
    void start_anew();
    [[nodiscard]] const Health& health() const { return health_; }

  private:
    Error broken(const Error& why);
    void note_state();
    void note_round_trip();

    Connect connect_;
    std::optional<Connection> connection_;
    Breaker breaker_;
    Health health_;
    Clock::time_point sent_{};
    size_t replicas_ = 0;
    Clock::time_point role_due_{};
};

}  // namespace sluice::redis
