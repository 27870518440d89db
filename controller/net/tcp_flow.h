// What the kernel knows of a TCP flow, by its own list of sockets: whether its peer has completed a
// handshake, so that its address is no forged one.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/address.h"

namespace sluice {

struct TcpEnd {
    IpAddress address;
    uint16_t port = 0;
};

class TcpFlows {
  public:
    // Of the network namespace that this process is in.
    static Result<TcpFlows> open();

    // False as well where the kernel does not say, or the connection is over.
    [[nodiscard]] bool is_established(const TcpEnd& own, const TcpEnd& peer);

  private:
    explicit TcpFlows(UniqueFd socket) : socket_(std::move(socket)) {}

    UniqueFd socket_;
    uint32_t sequence_ = 0;
};

}  // namespace sluice
