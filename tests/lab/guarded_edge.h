// A gate on the edge of a network of the test's own, and floods against it.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "flood.h"
#include "gate/attachment.h"
#include "gate/source_rules.h"
#include "gate/tables.h"
#include "network.h"

namespace sluice::lab {

using namespace std::chrono_literals;

// Floods in threads of their own; they end with this.
class Floods {
  public:
    explicit Floods(const Network& network) : network_(&network) {}
    ~Floods() { stop(); }

    void start(const FloodPlan& plan);
    // Tells all to stop, and waits.
    void stop();
    // Waits until all have ended by themselves.
    void wait();
    // Of the n-th flood, after it has ended.
    [[nodiscard]] uint64_t sent(size_t n) const { return reports_[n].sent; }
    [[nodiscard]] uint64_t sent() const;
    // From the start of the first to the end of the last.
    [[nodiscard]] double seconds() const;
    // While all of the first `count` were at it.
    [[nodiscard]] double seconds_together(size_t count) const;

  private:
    struct Outcome {
        uint64_t sent = 0;
        std::chrono::steady_clock::time_point begun, ended;
        std::string error;
    };
    const Network* network_;
    std::atomic<bool> stop_ = false;
    std::vector<Outcome> reports_ = std::vector<Outcome>(8);
    std::vector<std::thread> threads_;
};

class GuardedEdge : public ::testing::Test {
  protected:
    // Skips where the machine cannot do it.
    void SetUp() override;
    void TearDown() override;

    void install(const std::string& policy);
    // In enforce mode; the test fails where that fails.
    Attachment attach(XdpMode mode = XdpMode::native);
    Result<Attachment> try_attach(const std::string& interface, XdpMode mode = XdpMode::native);

    // Datagrams to port 80 of the edge, as fast as the CPU can.
    [[nodiscard]] static FloodPlan flood_from(std::string_view source,
                                              std::chrono::milliseconds duration);

    [[nodiscard]] uint64_t counted(sluice_verdict verdict) const;
    [[nodiscard]] uint64_t counted(sluice_verdict verdict, std::string_view service) const;
    [[nodiscard]] uint64_t would(sluice_verdict verdict) const;
    [[nodiscard]] uint64_t counted_all() const;
    [[nodiscard]] uint32_t service_id(std::string_view service) const;
    // Units of one dimension that packets asked the service's budget for.
    [[nodiscard]] uint64_t demand(std::string_view service, sluice_dimension dimension) const;

    const Network& network() const { return *network_; }
    Tables& tables() { return *tables_; }

  private:
    std::string pin_dir_;
    std::optional<Network> network_;
    std::optional<Tables> tables_;
};

}  // namespace sluice::lab
