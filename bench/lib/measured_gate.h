// The gate with tables of its own that nobody else finds, dropping what it would pass.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "gate/counters.h"
#include "gate/program.h"
#include "gate/tables.h"

namespace sluice::bench {

struct GateOptions {
    TableSizes sizes;      // cpus is filled in
    bool drop_all = true;  // packets that pass too, once they are decided and counted
};

class MeasuredGate {
  public:
    static Result<MeasuredGate> make(const GateOptions& options = {});

    [[nodiscard]] Tables& tables() { return *tables_; }
    [[nodiscard]] const Tables& tables() const { return *tables_; }
    [[nodiscard]] int fd() const { return program_->fd(); }
    [[nodiscard]] uint32_t machine_code_bytes() const;
    [[nodiscard]] uint64_t counted(sluice_verdict verdict) const;

    Status install(const std::string& policy);

  private:
    MeasuredGate() = default;

    std::unique_ptr<Tables> tables_;
    std::unique_ptr<Program> program_;
};

}  // namespace sluice::bench
