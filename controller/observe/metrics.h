// Prometheus metrics, read from the maps at each scrape. Never an address as a label.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace prometheus {
class Collectable;
class Exposer;
}  // namespace prometheus

namespace sluice {

class Families;

// Adds what the tables of the gate don't know, in a thread of its own, until the Metrics are gone.
using MoreMetrics = std::function<void(Families&)>;

class Metrics {
  public:
    // "127.0.0.1:9617"; the gate is opened anew at each scrape, so it may come and go.
    static Result<std::unique_ptr<Metrics>> listen(const std::string& address,
                                                   const std::string& pin_dir, MoreMetrics more);
    ~Metrics();

  private:
    Metrics() = default;
    std::shared_ptr<prometheus::Collectable> source_;
    std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace sluice
