#include "control/server.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "control/client.h"

namespace sluice {

namespace {

// Operators in an incident, and a few scripts; more than that is a mistake, and is told so.
constexpr size_t kMostClients = 256;
// Of them, so many are root's alone.
constexpr size_t kKeptForRoot = 16;
// Without a word for so long, a client gives way to one that has something to say.
constexpr std::chrono::seconds kIdle(10);
// So long nobody is let in once the process has no descriptor, or no memory, for another client.
constexpr std::chrono::milliseconds kNoDescriptors(500);
// What a follower may be behind before it loses lines.
constexpr size_t kFollowerBacklog = 1U << 20;
// As many may wait to be let in, while one command takes its time.
constexpr int kQueue = kMostClients;

bool would_block() {
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

Result<gid_t> group_id(const std::string& name) {
    std::array<char, 16'384> buffer{};
    group entry{};
    group* found = nullptr;
    if (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
        found == nullptr)
        return failed("[control] group: there is no group \"" + name + '"',
                      "make it: groupadd --system " + name);
    return found->gr_gid;
}

bool is_served(const std::string& path) {
    return ControlClient::connect(path, std::chrono::seconds(1)).has_value();
}

// Nobody is there any more: not one who only has no more to ask.
bool has_hung_up(int socket) {
    pollfd look{socket, 0, 0};
    return ::poll(&look, 1, 0) == 1 && (look.revents & (POLLHUP | POLLERR)) != 0;
}

Result<UniqueFd> listen_at(const ControlOptions& options) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (options.path.empty() || options.path.size() >= sizeof(address.sun_path))
        return make_error(ErrorCode::usage, "the socket's path must have 1 to " +
                                                std::to_string(sizeof(address.sun_path) - 1) +
                                                " characters");
    std::memcpy(address.sun_path, options.path.data(), options.path.size());
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(options.path).parent_path(), ignored);
    if (is_served(options.path))
        return failed("another daemon listens at " + options.path,
                      "stop that one, or give this one a --socket of its own");
    struct stat info {};
    if (::lstat(options.path.c_str(), &info) == 0) {
        if (!S_ISSOCK(info.st_mode))
            return failed(options.path + " is there and is no socket", "name another --socket");
        (void)::unlink(options.path.c_str());
    }

    UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener)
        return from_errno(errno, "make a socket");
    // Nobody may connect before the rights are as they should be.
    (void)::fchmod(listener.get(), S_IRUSR | S_IWUSR);
    if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
        return from_errno(errno, "listen at " + options.path);
    mode_t rights = S_IRUSR | S_IWUSR;
    if (!options.group.empty()) {
        const auto group = group_id(options.group);
        if (!group)
            return group.error();
        if (::chown(options.path.c_str(), static_cast<uid_t>(-1), *group) != 0)
            return from_errno(errno, "give " + options.path + " to the group " + options.group);
        rights |= S_IRGRP | S_IWGRP;
    }
    if (::chmod(options.path.c_str(), rights) != 0 || ::listen(listener.get(), kQueue) != 0)
        return from_errno(errno, "listen at " + options.path);
    return listener;
}

}  // namespace

Result<ControlServer> ControlServer::listen(const ControlOptions& options, ControlHandler handler) {
    auto listener = listen_at(options);
    if (!listener)
        return listener.error();
    return ControlServer(options, *std::move(listener), std::move(handler));
}

// By now it may be somebody else's.
ControlServer::~ControlServer() {
    if (listener_ && name_ && inode_of(options_.path) == name_)
        (void)::unlink(options_.path.c_str());
}

std::optional<std::pair<dev_t, ino_t>> ControlServer::inode_of(const std::string& path) {
    struct stat info {};
    return ::lstat(path.c_str(), &info) == 0 ? std::optional(std::pair(info.st_dev, info.st_ino))
                                             : std::nullopt;
}

bool ControlServer::look_after_name() {
    if (inode_of(options_.path))
        return false;
    auto listener = listen_at(options_);
    if (!listener)
        return false;
    listener_ = *std::move(listener);
    name_ = inode_of(options_.path);
    return true;
}

void ControlServer::add_polls(std::vector<pollfd>& polls) const {
    if (std::chrono::steady_clock::now() >= accept_from_)
        polls.push_back({listener_.get(), POLLIN, 0});
    for (const auto& [fd, client] : clients_) {
        short wanted = 0;
        // Who does not read his answers is not asked for more questions.
        if (!client.ended && client.output.empty() && !client.has_line())
            wanted |= POLLIN;
        if (!client.output.empty())
            wanted |= POLLOUT;
        polls.push_back({fd, wanted, 0});
    }
}

void ControlServer::handle(const pollfd& event) {
    if (event.revents == 0)
        return;
    if (event.fd == listener_.get()) {
        accept();
        return;
    }
    const auto found = clients_.find(event.fd);
    if (found == clients_.end())
        return;
    Client& client = found->second;
    if ((event.revents & POLLOUT) != 0)
        write_to(client);
    if ((event.revents & POLLIN) != 0)
        read_from(client);
    // Who hangs up gives up what is not begun; who only closes his end waits for the answer.
    if ((event.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0 || client.is_over())
        clients_.erase(found);
}

void ControlServer::accept() {
    for (;;) {
        UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket) {
            // Whoever waits would be reported again at once.
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                accept_from_ = std::chrono::steady_clock::now() + kNoDescriptors;
            return;
        }
        ucred credentials{};
        socklen_t size = sizeof(credentials);
        if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
            continue;
        Client client;
        client.peer = {credentials.uid, credentials.gid, credentials.pid};
        client.socket = std::move(socket);
        if (!make_room(client.peer)) {
            // Into an empty buffer it fits; and who is turned away is not waited for.
            client.refuse(
                failed("the daemon has " + std::to_string(kMostClients) + " clients already",
                       "try again in a moment"));
            write_to(client);
            continue;
        }
        const int fd = client.socket.get();
        clients_.insert_or_assign(fd, std::move(client));
    }
}

bool ControlServer::make_room(const ControlPeer& peer) {
    if (clients_.size() < (peer.uid == 0 ? kMostClients : kMostClients - kKeptForRoot))
        return true;
    const auto longest = std::ranges::min_element(clients_, {}, [](const auto& entry) {
        return std::pair(!entry.second.is_idle(), entry.second.heard);
    });
    const bool gives_way = longest != clients_.end() && longest->second.is_idle() &&
                           std::chrono::steady_clock::now() - longest->second.heard >= kIdle;
    if (gives_way)
        clients_.erase(longest);
    return gives_way;
}

void ControlServer::read_from(Client& client) {
    std::array<char, 65'536> chunk;
    const ssize_t got = ::recv(client.socket.get(), chunk.data(), chunk.size(), 0);
    if (got > 0) {
        client.heard = std::chrono::steady_clock::now();
        client.input.append(chunk.data(), static_cast<size_t>(got));
        if (client.input.size() > kLongestRequest && !client.has_line()) {
            client.refuse(
                make_error(ErrorCode::usage,
                           "a request of more than " + std::to_string(kLongestRequest) + " bytes",
                           "end it with a newline"));
            write_to(client);
        }
    } else if (got == 0) {
        // The end closes the last line, too.
        if (!client.input.empty())
            client.input += '\n';
        client.ended = true;
    } else if (!would_block()) {
        client.drop();
    }
}

bool ControlServer::has_requests() const {
    return std::any_of(clients_.begin(), clients_.end(),
                       [](const auto& entry) { return entry.second.is_waiting(); });
}

void ControlServer::answer_next() {
    const auto is_waiting = [](const auto& entry) { return entry.second.is_waiting(); };
    auto next = std::find_if(clients_.upper_bound(answered_), clients_.end(), is_waiting);
    if (next == clients_.end())
        next = std::find_if(clients_.begin(), clients_.end(), is_waiting);
    if (next == clients_.end())
        return;
    answered_ = next->first;
    Client& client = next->second;
    // He may have been told that it failed, for it took too long.
    if (has_hung_up(next->first)) {
        clients_.erase(next);
        return;
    }
    const size_t end = client.input.find('\n');
    answer(client, client.input.substr(0, end));
    client.input.erase(0, end + 1);
    write_to(client);
    if (client.is_over())
        clients_.erase(next);
}

void ControlServer::answer(Client& client, std::string_view line) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos)
        return;
    const auto request = parse_request(line);
    if (!request) {
        client.output += format_answer(nullptr, error_answer(request.error()));
        return;
    }
    ControlJson answer = handler_(*request, client.peer);
    if (answer.value("follow", false)) {
        client.follows = true;
        answer.erase("follow");
    }
    client.output += format_answer(request->id, std::move(answer));
}

void ControlServer::Client::refuse(const Error& error) {
    input.clear();
    output += format_answer(nullptr, error_answer(error));
    ended = true;
}

void ControlServer::Client::drop() {
    input.clear();
    output.clear();
    ended = true;
}

void ControlServer::write_to(Client& client) {
    while (!client.output.empty()) {
        const ssize_t sent =
            ::send(client.socket.get(), client.output.data(), client.output.size(), MSG_NOSIGNAL);
        if (sent > 0) {
            client.output.erase(0, static_cast<size_t>(sent));
        } else {
            if (!would_block())
                client.drop();
            return;
        }
    }
}

void ControlServer::publish(const std::string& line) {
    for (auto& [fd, client] : clients_) {
        if (!client.follows || client.ended)
            continue;
        if (client.output.size() > kFollowerBacklog) {
            client.lost++;
            continue;
        }
        if (client.lost != 0)
            client.output += "{\"lost\":" + std::to_string(std::exchange(client.lost, 0)) + "}\n";
        client.output += line;
        write_to(client);
    }
}

bool ControlServer::has_followers() const {
    for (const auto& [fd, client] : clients_)
        if (client.follows)
            return true;
    return false;
}

}  // namespace sluice
