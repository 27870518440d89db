// Host names to addresses, with a deadline, which getaddrinfo() does not have.
#pragma once

#include <sys/socket.h>

#include <vector>

#include "base/result.h"
#include "redis/deadline.h"
#include "redis/url.h"

namespace sluice::redis {

struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t size = 0;

    [[nodiscard]] const sockaddr* generic() const {
        return reinterpret_cast<const sockaddr*>(&storage);
    }
};

// At least one, the preferred first. ErrorCode::unreachable where there is none, or none in time.
Result<std::vector<SocketAddress>> resolve(const Endpoint& endpoint, Deadline deadline);

}  // namespace sluice::redis
