#include "redis/resolve.h"

#include <netdb.h>
#include <sys/un.h>

#include <cstring>
#include <future>
#include <memory>
#include <thread>

namespace sluice::redis {

namespace {

using Addresses = Result<std::vector<SocketAddress>>;

Addresses unix_address(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path))
        return make_error(ErrorCode::usage,
                          "url: the path has " + std::to_string(path.size()) + " characters",
                          "use at most " + std::to_string(sizeof(address.sun_path) - 1));
    std::memcpy(address.sun_path, path.data(), path.size());
    SocketAddress result;
    std::memcpy(&result.storage, &address, sizeof(address));
    result.size = sizeof(address);
    return std::vector{result};
}

Addresses look_up(const std::string& host, uint16_t port, int flags) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = flags | AI_NUMERICSERV;
    addrinfo* raw = nullptr;
    const int failure = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &raw);
    if (failure != 0)
        return make_error(ErrorCode::unreachable, "look up " + host + ": " + gai_strerror(failure),
                          "name an address in url, or mend the name service");
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(raw, &::freeaddrinfo);
    std::vector<SocketAddress> addresses;
    for (const addrinfo* one = list.get(); one != nullptr; one = one->ai_next) {
        SocketAddress& address = addresses.emplace_back();
        std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
        address.size = one->ai_addrlen;
    }
    return addresses;
}

}  // namespace

Result<std::vector<SocketAddress>> resolve(const Endpoint& endpoint, Deadline deadline) {
    if (endpoint.host.empty())
        return unix_address(endpoint.path);
    if (auto numeric = look_up(endpoint.host, endpoint.port, AI_NUMERICHOST))
        return numeric;
    // A name server that is gone holds getaddrinfo() for half a minute, and nothing can call it
    // back: a thread of its own may wait for it, and nobody for the thread.
    std::packaged_task<Addresses()> task(
        [endpoint] { return look_up(endpoint.host, endpoint.port, AI_ADDRCONFIG); });
    std::future<Addresses> addresses = task.get_future();
    std::thread(std::move(task)).detach();
    if (addresses.wait_until(deadline) != std::future_status::ready)
        return make_error(ErrorCode::unreachable,
                          "look up " + endpoint.host + ": no answer in time",
                          "name an address in url, or mend the name service");
    return addresses.get();
}

}  // namespace sluice::redis
