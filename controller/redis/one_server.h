// All keys on one server: the one that the url names, or the master that sentinels name.
#pragma once

#include <memory>

#include "redis/sentinels.h"
#include "redis/topology.h"

namespace sluice::redis {

class OneServer : public Topology {
  public:
    // `target` is of Form::server or Form::sentinel.
    OneServer(Target target, Access access);

    void prepare(Deadline deadline) override;
    Result<Link*> home(std::optional<std::string_view>) override { return &link_; }
    std::optional<Detour> detour(const Reply&) override { return std::nullopt; }
    void doubt() override {}
    [[nodiscard]] Health health() const override { return link_.health(); }

  private:
    Result<Connected> connect(Deadline deadline);

    Access access_;
    Endpoint server_;                       // of Form::server
    std::unique_ptr<Sentinels> sentinels_;  // of Form::sentinel
    Link link_;
};

}  // namespace sluice::redis
