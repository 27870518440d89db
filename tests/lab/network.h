// Two network namespaces of the test's own, joined by one veth pair: edge0 in the edge, which the
// gate guards, and world0 in the world, where everybody else lives. They have no names and end
// with the process, however that ends.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace sluice::lab {

inline constexpr std::string_view kEdge4 = "192.0.2.1", kEdge6 = "2001:db8:0:1::1",
                                  kWorld4 = "192.0.2.2", kWorld6 = "2001:db8:0:1::2";

// What an edge's stack has received of UDP, whether or not anybody listened.
struct UdpReceived {
    uint64_t ipv4 = 0;
    uint64_t ipv6 = 0;
};

class Network {
  public:
    static Result<Network> make(unsigned queues = 2);

    // Runs a function in a namespace; the calling thread comes back from there.
    template <class F>
    auto in_edge(F&& function) const {
        const Visit visit(edge_.get());
        return function();
    }
    template <class F>
    auto in_world(F&& function) const {
        const Visit visit(world_.get());
        return function();
    }
    // Shell commands there; false where the last one fails.
    [[nodiscard]] bool edge_shell(const std::string& commands) const;
    [[nodiscard]] bool world_shell(const std::string& commands) const;

    [[nodiscard]] UdpReceived received() const;
    // Bytes that edge0 has received, as the kernel counts its interfaces.
    [[nodiscard]] uint64_t received_bytes() const;
    // Frames that found a receive queue full, before any XDP program saw them.
    [[nodiscard]] uint64_t lost_in_queue() const;

  private:
    class Visit {
      public:
        explicit Visit(int netns);
        ~Visit();
        Visit(const Visit&) = delete;
        Visit& operator=(const Visit&) = delete;

      private:
        UniqueFd home_;
    };

    Network() = default;

    UniqueFd edge_;
    UniqueFd world_;
};

}  // namespace sluice::lab
