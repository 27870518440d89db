// Commands out and replies in, in order, on one stream.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "redis/protocol.h"
#include "redis/stream.h"

namespace sluice::redis {

class Wire {
  public:
    explicit Wire(Stream stream) : stream_(std::move(stream)) {}

    // Commands with a gap for it get `run_id`.
    Status send(std::span<const Command> commands, std::string_view run_id, Deadline deadline);
    // Nothing where none came in time; with a deadline that is over, what is there already.
    Result<std::optional<Reply>> receive(Deadline deadline);
    // So many; an error where they don't all come in time.
    Result<std::vector<Reply>> receive(size_t count, Deadline deadline);
    // Both: the commands, and their replies.
    Result<std::vector<Reply>> ask(std::span<const Command> commands, Deadline deadline);
    // Whether nothing has come since the last reply: neither the end, nor what nobody asked for.
    [[nodiscard]] bool is_idle();

  private:
    Stream stream_;
    ReplyReader reader_;
};

}  // namespace sluice::redis
