// The protocol of Redis (RESP2), as hiredis reads and writes it. Nobody else includes hiredis.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "redis/command.h"
#include "redis/reply.h"

struct redisReader;

namespace sluice::redis {

// Appends the command as the server reads it; `run_id` goes where the command has a gap for it.
Status append_command(std::string& bytes, const Command& command, std::string_view run_id);

// Bytes in, replies out.
class ReplyReader {
  public:
    // A reply larger than any that is asked for here: what sends it is out of its mind, and must
    // not take this host's memory with it.
    static constexpr size_t kMostBytes = size_t{64} << 20;
    static constexpr size_t kMostElements = size_t{1} << 20;  // of one list

    ReplyReader();

    Status feed(std::string_view bytes);
    // The next whole reply; nothing where bytes are missing.
    Result<std::optional<Reply>> next();
    // Whether no byte is left of what came behind the last whole reply.
    [[nodiscard]] bool is_empty() const { return unfinished_ == 0; }

  private:
    struct Free {
        void operator()(redisReader* reader) const noexcept;
    };
    std::unique_ptr<redisReader, Free> reader_;
    size_t unfinished_ = 0;  // bytes since the last whole reply
};

}  // namespace sluice::redis
