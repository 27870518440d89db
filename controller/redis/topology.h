// Which server a key lives on: the one, the master behind sentinels, a node of a cluster.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "redis/deadline.h"
#include "redis/link.h"
#include "redis/reply.h"

namespace sluice::redis {

// What to do with a command after an error reply that tells where to ask instead.
struct Detour {
    Link* link = nullptr;  // never null; lives until the next prepare()
    bool asking = false;   // the slot is about to move there: ASKING goes before the command
};

class Topology {
  public:
    virtual ~Topology() = default;

    // Before each run: takes notice of what changed since the last. The Links that were given out
    // may go.
    virtual void prepare(Deadline deadline) = 0;
    // Where a command with this key goes, or one that has none.
    virtual Result<Link*> home(std::optional<std::string_view> key) = 0;
    // Nothing where the reply sends the command nowhere else.
    virtual std::optional<Detour> detour(const Reply& reply) = 0;
    // The server did not answer, or not as one that serves.
    virtual void doubt() = 0;

    [[nodiscard]] virtual Health health() const = 0;
};

}  // namespace sluice::redis
