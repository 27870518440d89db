#include "redis/wire.h"

#include <array>
#include <string>

namespace sluice::redis {

Status Wire::send(std::span<const Command> commands, std::string_view run_id, Deadline deadline) {
    std::string bytes;
    for (const Command& command : commands)
        if (const Status appended = append_command(bytes, command, run_id); !appended)
            return appended;
    return stream_.send(bytes, deadline);
}

Result<std::optional<Reply>> Wire::receive(Deadline deadline) {
    std::array<char, 65'536> chunk;
    for (;;) {
        auto reply = reader_.next();
        if (!reply || *reply)
            return reply;
        const auto got = stream_.receive(chunk, deadline);
        if (!got)
            return got.error();
        if (*got == 0)
            return std::optional<Reply>();
        if (const Status fed = reader_.feed({chunk.data(), *got}); !fed)
            return fed.error();
    }
}

Result<std::vector<Reply>> Wire::receive(size_t count, Deadline deadline) {
    std::vector<Reply> replies;
    replies.reserve(count);
    while (replies.size() < count) {
        auto reply = receive(deadline);
        if (!reply)
            return reply.error();
        if (!*reply)
            return make_error(ErrorCode::unreachable, "no answer in time",
                              "look why it is slow (redis-cli --latency, SLOWLOG GET), or raise "
                              "command_timeout");
        replies.push_back(**std::move(reply));
    }
    return replies;
}

Result<std::vector<Reply>> Wire::ask(std::span<const Command> commands, Deadline deadline) {
    if (const Status sent = send(commands, {}, deadline); !sent)
        return sent.error();
    return receive(commands.size(), deadline);
}

bool Wire::is_idle() {
    const auto reply = receive(Deadline());
    return reply && !*reply && reader_.is_empty();
}

}  // namespace sluice::redis
