// The audit log: who changed what, from where, why; written before the change takes effect.
#pragma once

#include <chrono>
#include <cstdint>
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

struct AuditView {
    std::vector<std::string> lines;  // oldest first, as they are in the file
    bool left_out = false;           // older ones may be among those that were asked for
};

class AuditLog {
  public:
    explicit AuditLog(std::string state_dir) : path_(std::move(state_dir) + "/audit.jsonl") {}

    // Appends one line, whole or not at all. A disk that cannot take it does not stop an operator
    // in an incident: the caller warns and goes on.
    [[nodiscard]] Status write(const Operator& who, const AuditEntry& entry) const;

    // Whether it could be written to, as far as can be told without doing so.
    [[nodiscard]] Status check() const;

    // Of the last so many bytes of the file: some 80,000 lines, more than anybody reads.
    static constexpr uint64_t kMostRead = 16 << 20;
    // The lines of the last `since`; none where there is no file.
    [[nodiscard]] Result<AuditView> read(std::chrono::nanoseconds since) const;

    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

}  // namespace sluice
