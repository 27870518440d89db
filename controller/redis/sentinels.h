// The sentinels of one master: who it is, and when another takes over.
#pragma once

#include <optional>
#include <vector>

#include "redis/link.h"

namespace sluice::redis {

class Sentinels {
  public:
    // `target` is of Form::sentinel; `access` outlives this.
    Sentinels(Target target, const Access& access);

    // Asks all of them, and takes the newest master named that says it is one. Those that can't be
    // reached share the time with the others.
    Result<Connected> connect_master(Deadline deadline);
    // Whether they have told of another master since connect_master(); without waiting, but for
    // one try a second where no sentinel is listened to.
    [[nodiscard]] bool master_moved(Deadline deadline);

  private:
    // A sentinel's word, and the wire on which it tells of changes from now on.
    struct Nomination {
        Endpoint master;
        uint64_t epoch = 0;  // of the configuration: grows with each failover
        Wire wire;
    };

    Result<Nomination> ask(const Endpoint& sentinel, Deadline deadline) const;
    Result<Nomination> ask_on(Wire wire, Deadline deadline) const;
    [[nodiscard]] std::vector<Nomination> ask_all(Deadline deadline);
    [[nodiscard]] bool listen_again(Deadline deadline);
    [[nodiscard]] bool tells_of_move(const Reply& message) const;

    Target target_;
    const Access& access_;
    std::optional<Wire> watched_;
    Clock::time_point next_try_{};  // to listen
    size_t next_sentinel_ = 0;      // to listen to
    Endpoint master_;
    uint64_t epoch_ = 0;
    Error last_error_;
};

}  // namespace sluice::redis
