// Prometheus metrics, read from the maps at each scrape. Never an address as a label.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace prometheus {
class Collectable;
class Exposer;
}  // namespace prometheus

namespace sluice {

class Metrics {
  public:
    // "127.0.0.1:9617"; the gate is opened anew at each scrape, so it may come and go.
    static Result<std::unique_ptr<Metrics>> listen(const std::string& address,
                                                   const std::string& pin_dir);
    ~Metrics();

  private:
    Metrics() = default;
    std::shared_ptr<prometheus::Collectable> source_;
    std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace sluice
