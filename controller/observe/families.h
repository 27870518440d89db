// The metrics of one scrape, family by family.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <utility>
#include <vector>

namespace sluice {

using Labels = std::vector<prometheus::ClientMetric::Label>;

class Families {
  public:
    // The metrics that follow belong to this family.
    void begin(const std::string& name, const std::string& help, prometheus::MetricType type) {
        families_.push_back({name, help, type, {}});
    }
    void add(Labels labels, double value) {
        prometheus::ClientMetric metric;
        metric.label = std::move(labels);
        if (families_.back().type == prometheus::MetricType::Counter)
            metric.counter.value = value;
        else
            metric.gauge.value = value;
        families_.back().metric.push_back(std::move(metric));
    }
    void one(const std::string& name, const std::string& help, prometheus::MetricType type,
             double value) {
        begin(name, help, type);
        add({}, value);
    }
    [[nodiscard]] std::vector<prometheus::MetricFamily> take() { return std::move(families_); }

  private:
    std::vector<prometheus::MetricFamily> families_;
};

}  // namespace sluice
