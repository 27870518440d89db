// A Redis Cluster: which node has which slot, and a link to each.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "redis/topology.h"

namespace sluice::redis {

class Cluster : public Topology {
  public:
    // `target` is of Form::cluster; its nodes are those that are asked for all the others.
    Cluster(Target target, Access access);

    void prepare(Deadline deadline) override;
    Result<Link*> home(std::optional<std::string_view> key) override;
    std::optional<Detour> detour(const Reply& reply) override;
    void doubt() override { in_doubt_ = true; }
    // Of the node that is worst off.
    [[nodiscard]] Health health() const override;

  private:
    struct Node {
        Endpoint endpoint;
        Link link;
    };
    // Who has these slots, both ends included.
    struct Range {
        uint16_t first = 0;
        uint16_t last = 0;
        Endpoint master;
    };

    static Result<std::vector<Range>> read_ranges(const Reply& reply, const Endpoint& from);
    Result<std::vector<Range>> ask(const Endpoint& node, Deadline deadline);
    Result<std::vector<Range>> ask_somebody(Deadline deadline);
    [[nodiscard]] std::vector<Endpoint> whom_to_ask();
    void adopt(const std::vector<Range>& ranges);
    Link* link_to(const Endpoint& endpoint);

    std::vector<Endpoint> seeds_;
    Access access_;
    std::map<std::string, Node> nodes_;  // by address
    std::vector<Link*> slots_;           // into nodes_; null: nobody's
    bool in_doubt_ = true;               // whether slots_ still holds
    Clock::time_point asked_at_{};
    size_t times_asked_ = 0;
    Breaker discovery_;  // of the map as a whole
};

}  // namespace sluice::redis
