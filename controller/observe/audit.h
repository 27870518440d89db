// The audit log: who changed what, from where, why; written before the change takes effect.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "operate/operator.h"

namespace sluice {

struct AuditEntry {
    std::string action;  // "ban"
    std::string target;  // "192.0.2.0/24"
    std::string before;  // what stood there; empty = nothing
    std::string after;
    std::string reason;
};

class AuditLog {
  public:
    explicit AuditLog(std::string state_dir) : path_(std::move(state_dir) + "/audit.jsonl") {}

    // Appends one line, whole or not at all. A disk that cannot take it does not stop an operator
    // in an incident: the caller warns and goes on.
    [[nodiscard]] Status write(const Operator& who, const AuditEntry& entry) const;

    // The lines of the last `since`, oldest first, as they are in the file.
    [[nodiscard]] Result<std::vector<std::string>> read(std::chrono::nanoseconds since) const;

    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

}  // namespace sluice
