// Bytes to and from a server, in the clear or by TLS.
#pragma once

#include <optional>

#include "redis/tls.h"

namespace sluice::redis {

class Stream {
  public:
    // Without TLS where there is no context. Both within the deadline.
    static Result<Stream> open(const Endpoint& endpoint, const TlsContext* tls, Deadline deadline);

    // As those of Socket.
    Status send(std::string_view bytes, Deadline deadline);
    Result<size_t> receive(std::span<char> room, Deadline deadline);

  private:
    explicit Stream(Socket socket) : socket_(std::move(socket)) {}

    Socket socket_;
    std::optional<TlsSession> tls_;
};

}  // namespace sluice::redis
