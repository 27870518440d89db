#include "redis/wire.h"

#include <array>

namespace sluice::redis {

Status Wire::send(std::string_view bytes, Deadline deadline) {
    return stream_.send(bytes, deadline);
}

Result<std::optional<Reply>> Wire::receive(Deadline deadline) {
    std::array<char, 16'384> chunk;
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

bool Wire::is_idle() {
    const auto reply = receive(Deadline());
    return reply && !*reply && reader_.is_empty();
}

}  // namespace sluice::redis
