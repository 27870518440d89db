// A veth pair of its own for each contender: what one of them keeps is not in another's way, and
// who receives is chosen by where the packets are sent.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "flood.h"
#include "network.h"

namespace sluice::bench {

// Packets towards one lane, from one CPU or from several at once.
class Traffic {
  public:
    // ns a packet of one CPU, all the way from the generator until the receiver is done with it;
    // `packets` from each CPU.
    Result<double> time(uint64_t packets);
    // What was sent in all.
    [[nodiscard]] uint64_t sent() const { return sent_; }

  private:
    friend class Lane;
    explicit Traffic(const lab::Network& network) : network_(&network) {}

    const lab::Network* network_;
    std::vector<lab::Flood> floods_;  // one a CPU
    std::vector<unsigned> cpus_;
    uint64_t sent_ = 0;
};

class Lane {
  public:
    // Its namespaces end with the process, however that ends.
    static Result<Lane> make();

    // At the edge, in native mode.
    Status attach(int program) const;
    // The device of the plan is the lane's. Stays where it is for as long as the traffic.
    [[nodiscard]] Result<Traffic> traffic(lab::FloodPlan plan,
                                          const std::vector<unsigned>& cpus) const;
    [[nodiscard]] const lab::Network& network() const { return network_; }

  private:
    explicit Lane(lab::Network network) : network_(std::move(network)) {}

    lab::Network network_;
};

Status pin_to(unsigned cpu);

}  // namespace sluice::bench
