#include "redis/stream.h"

namespace sluice::redis {

Result<Stream> Stream::open(const Endpoint& endpoint, const TlsContext* tls, Deadline deadline) {
    auto socket = Socket::connect(endpoint, deadline);
    if (!socket)
        return socket.error();
    Stream stream(*std::move(socket));
    if (tls == nullptr)
        return stream;
    auto session = TlsSession::handshake(*tls, stream.socket_, endpoint.host, deadline);
    if (!session)
        return session.error();
    stream.tls_ = *std::move(session);
    return stream;
}

Status Stream::send(std::string_view bytes, Deadline deadline) {
    return tls_ ? tls_->send(socket_, bytes, deadline) : socket_.send(bytes, deadline);
}

Result<size_t> Stream::receive(std::span<char> room, Deadline deadline) {
    return tls_ ? tls_->receive(socket_, room, deadline) : socket_.receive(room, deadline);
}

}  // namespace sluice::redis
