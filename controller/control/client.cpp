#include "control/client.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace sluice {

namespace {

Error gone() {
    return make_error(ErrorCode::unreachable, "the daemon went away before it answered",
                      "see what it did: sluicectl status");
}

}  // namespace

Result<ControlClient> ControlClient::connect(const std::string& path,
                                             std::chrono::milliseconds timeout) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof(address.sun_path))
        return make_error(ErrorCode::usage,
                          "--socket: the path has " + std::to_string(path.size()) + " characters",
                          "use 1 to " + std::to_string(sizeof(address.sun_path) - 1));
    std::memcpy(address.sun_path, path.data(), path.size());
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket)
        return from_errno(errno, "make a socket");
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
    const timeval limit{
        seconds.count(),
        std::chrono::duration_cast<std::chrono::microseconds>(timeout - seconds).count()};
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
        0) {
        Error error = from_errno(errno, "reach the daemon at " + path);
        if (error.code != ErrorCode::not_permitted)
            error.code = ErrorCode::unreachable;
        return error;
    }
    return ControlClient(std::move(socket));
}

Result<std::string> ControlClient::read_line() {
    std::array<char, 65'536> chunk;
    for (;;) {
        if (const size_t end = pending_.find('\n'); end != std::string::npos) {
            std::string line = pending_.substr(0, end);
            pending_.erase(0, end + 1);
            return line;
        }
        const ssize_t got = ::recv(socket_.get(), chunk.data(), chunk.size(), 0);
        if (got > 0)
            pending_.append(chunk.data(), static_cast<size_t>(got));
        else if (got == 0)
            return gone();
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return make_error(ErrorCode::unreachable, "the daemon did not answer in time",
                              "what it has not begun by now it will not do; see what it did: "
                              "sluicectl audit; past it, on the tables: --socket none");
        else if (errno != EINTR)
            return gone();
    }
}

Result<ControlJson> ControlClient::next() {
    const auto line = read_line();
    if (!line)
        return line.error();
    auto answer = ControlJson::parse(*line, nullptr, false);
    if (answer.is_discarded() || !answer.is_object())
        return failed("the daemon's answer makes no sense");
    return answer;
}

Result<ControlJson> ControlClient::ask(const ControlRequest& request) {
    const std::string line = format_request(request);
    for (size_t sent = 0; sent < line.size();) {
        const ssize_t n =
            ::send(socket_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
        if (n > 0)
            sent += static_cast<size_t>(n);
        else if (errno != EINTR)
            break;  // it may have said why before it hung up
    }
    return next();
}

}  // namespace sluice
