// Which hosts get a canary: some by name, or a part of all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice {

class CanaryHosts {
  public:
    // "10%", "0.5%"; or "edge1,edge2": names of machines, or the first eight digits or more of ids.
    static Result<CanaryHosts> parse(std::string_view text);

    // The same hosts for every canary of that part, and those of a smaller part are among those of
    // a larger one.
    [[nodiscard]] bool has(std::string_view id, std::string_view name) const;
    [[nodiscard]] bool is_part() const { return hosts_.empty(); }
    // As they were written.
    [[nodiscard]] const std::vector<std::string>& hosts() const { return hosts_; }
    static bool is_called(std::string_view host, std::string_view id, std::string_view name);
    // Canonical; parse() reads it back.
    [[nodiscard]] std::string to_string() const;

  private:
    unsigned per_10000_ = 0;
    std::vector<std::string> hosts_;  // empty: a part
};

}  // namespace sluice
