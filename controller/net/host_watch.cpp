#include "net/host_watch.h"

#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <tuple>
#include <utility>

#include "net/host.h"

namespace sluice {

namespace {

UniqueFd open_socket() {
    UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
    sockaddr_nl groups{};
    groups.nl_family = AF_NETLINK;
    groups.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
                       RTMGRP_IPV6_ROUTE;
    if (socket &&
        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&groups), sizeof groups) != 0)
        socket.reset();
    return socket;
}

}  // namespace

HostWatch::HostWatch(std::string resolv_conf) : resolv_conf_(std::move(resolv_conf)) {}

bool HostWatch::has_changed() {
    const uint64_t netns = own_netns();
    if (!socket_ || netns == 0 || netns != netns_) {
        socket_ = open_socket();
        netns_ = netns;
        has_other_resolvers();
        return true;
    }
    const bool heard = hears_of_changes();
    return has_other_resolvers() || heard;
}

// Takes all there is, so that the next call starts from here.
bool HostWatch::hears_of_changes() {
    bool heard = false;
    for (char nothing = 0;;) {
        if (::recv(socket_.get(), &nothing, sizeof nothing, MSG_TRUNC) >= 0) {
            heard = true;
            continue;
        }
        if (errno == EAGAIN)
            return heard;
        heard = true;
        if (errno == EINTR || errno == ENOBUFS)  // some were lost
            continue;
        socket_.reset();
        return true;
    }
}

bool HostWatch::has_other_resolvers() {
    struct stat now {};
    (void)::stat(resolv_conf_.c_str(), &now);  // all zeros where there is none
    const auto identity = [](const struct stat& file) {
        return std::tuple(file.st_dev, file.st_ino, file.st_size, file.st_mtim.tv_sec,
                          file.st_mtim.tv_nsec);
    };
    const bool others = identity(now) != identity(resolvers_);
    resolvers_ = now;
    return others;
}

}  // namespace sluice
