#include "daemon/surroundings.h"

#include <arpa/inet.h>
#include <grp.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "fleet/budget_sync.h"

namespace sluice {

namespace {

Status check_group(const std::string& name) {
    std::array<char, 16'384> buffer{};
    group entry{};
    group* found = nullptr;
    if (name.empty() ||
        (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 &&
         found != nullptr))
        return {};
    return failed("[control] group: there is no group \"" + name + '"',
                  "make it: groupadd --system " + name);
}

Status check_events(const std::string& where) {
    if (where.empty() || where == "journal" || where == "stdout")
        return {};
    struct stat info {};
    const bool there = ::stat(where.c_str(), &info) == 0;
    if (there && !S_ISREG(info.st_mode))
        return failed("[events] file: " + where + " is there, and is no file");
    auto folder = std::filesystem::path(where).parent_path().string();
    if (folder.empty())
        folder = ".";
    // Root may write everywhere, except where the file system or the unit says no.
    if (::access(there ? where.c_str() : folder.c_str(), W_OK) == 0)
        return {};
    return from_errno(errno, "[events] file: write to " + (there ? where : folder),
                      errno == ENOENT  ? "make it: mkdir -p " + folder
                      : errno == EROFS ? "name it in ReadWritePaths= of sluiced.service"
                                       : "");
}

// "127.0.0.1:9617", "[::1]:9617"; the reader of the configuration has looked at the form.
Status check_listen(const std::string& where, bool is_running) {
    if (where.empty())
        return {};
    const size_t colon = where.rfind(':');
    std::string host = where.substr(0, colon);
    if (host.starts_with('['))
        host = host.substr(1, host.size() - 2);
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), where.c_str() + colon + 1, &hints, &found) != 0)
        return failed("[metrics] listen: " + where + " is no address with a port");
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> address(found, ::freeaddrinfo);
    const UniqueFd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (::bind(socket.get(), found->ai_addr, found->ai_addrlen) == 0 &&
        ::listen(socket.get(), 1) == 0)
        return {};
    if (errno == EADDRINUSE && is_running)
        return {};
    return from_errno(errno, "[metrics] listen: at " + where,
                      errno == EADDRINUSE ? "another program is there; name another port"
                                          : "name an address of this host, such as 127.0.0.1");
}

}  // namespace

Status check_surroundings(const Surroundings& around, bool is_running) {
    for (const Status& checked :
         {check_group(around.control_group), check_events(around.events_file),
          check_listen(around.metrics_listen, is_running)})
        if (!checked)
            return checked;
    return {};
}

Status check_redis(const std::optional<RedisSettings>& settings) {
    if (!settings)
        return {};
    const auto redis = Redis::open(redis_options(*settings));
    return redis ? Status() : redis.error().with_context("[redis]");
}

}  // namespace sluice
