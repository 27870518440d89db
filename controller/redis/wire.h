// Commands out and replies in, in order, on one stream.
#pragma once

#include <optional>
#include <string_view>

#include "redis/protocol.h"
#include "redis/stream.h"

namespace sluice::redis {

class Wire {
  public:
    explicit Wire(Stream stream) : stream_(std::move(stream)) {}

    // Whole commands, as append_command() writes them.
    Status send(std::string_view bytes, Deadline deadline);
    // Nothing where none came in time; with a deadline that is over, what is there already.
    Result<std::optional<Reply>> receive(Deadline deadline);
    // Whether nothing has come since the last reply: neither the end, nor what nobody asked for.
    [[nodiscard]] bool is_idle();

  private:
    Stream stream_;
    ReplyReader reader_;
};

}  // namespace sluice::redis
