#include "daemon/instance_lock.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace sluice {

namespace {

// An address without a file: bound by one, and free the moment that he is gone. The pin directory
// cannot carry the lock: whoever writes the tables holds it there for a moment, and it may not
// exist yet.
sockaddr_un address_of(const std::string& pin_dir, socklen_t& size) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = "sluiced:" + pin_dir.substr(0, sizeof(address.sun_path) - 10);
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return address;
}

pid_t holder(const sockaddr_un& address, socklen_t size) {
    const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ucred peer{};
    socklen_t length = sizeof(peer);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
        return 0;
    return peer.pid;
}

}  // namespace

Result<InstanceLock> InstanceLock::take(const std::string& pin_dir) {
    socklen_t size = 0;
    const sockaddr_un address = address_of(pin_dir, size);
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket)
        return from_errno(errno, "make a socket");
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
        ::listen(socket.get(), 1) == 0)
        return InstanceLock(std::move(socket));
    if (errno != EADDRINUSE)
        return from_errno(errno, "lock " + pin_dir);
    const pid_t pid = holder(address, size);
    return failed("another sluiced keeps the gate in " + pin_dir +
                      (pid == 0 ? "" : " (process " + std::to_string(pid) + ')'),
                  "stop that one, or give this one a --pin-dir of its own");
}

}  // namespace sluice
