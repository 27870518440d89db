// A gate's tables of a test's own, in a pin directory of its own that goes with it.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "gate/tables.h"

namespace sluice {

// Small enough to make dozens of, large enough to grow once or twice.
TableSizes small_sizes();

// Why BPF cannot be tested here; empty where it can.
std::string bpf_obstacle();
// Of nobody else; the test removes it.
std::string next_pin_dir();

class GateTest : public ::testing::Test {
  protected:
    // Skips where BPF is not permitted.
    void SetUp() override;
    void TearDown() override;

    // Makes the tables anew; the test fails where that fails.
    void make_tables(const TableSizes& sizes);

    std::string pin_dir_;
    std::optional<Tables> tables_;
};

}  // namespace sluice
