// Whether what this host looks like from outside may have changed since somebody looked.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "base/unique_fd.h"

namespace sluice {

class HostWatch {
  public:
    explicit HostWatch(std::string resolv_conf = "/etc/resolv.conf");

    // Whether addresses, routes, name servers or the caller's network namespace are others than at
    // the last call. True the first time, and whenever the kernel does not tell. To be asked before
    // one looks, so that what changes meanwhile is seen the next time.
    bool has_changed();

  private:
    bool hears_of_changes();
    bool has_other_resolvers();

    std::string resolv_conf_;
    struct stat resolvers_ {};
    uint64_t netns_ = 0;
    UniqueFd socket_;  // rtnetlink; what it hears is of the namespace in which it was opened
};

}  // namespace sluice
