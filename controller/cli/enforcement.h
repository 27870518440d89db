// Whether the gate acts on packets at present: one notion of it for all commands.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "gate/attachment.h"
#include "gate/tables.h"

namespace sluice::cli {

struct Enforcement {
    Mode mode = Mode::off;
    bool acts = false;              // on one interface at least
    std::vector<std::string> idle;  // where it does not, and why, each with its mend

    [[nodiscard]] bool drops() const { return acts && mode == Mode::enforce; }
};

Enforcement enforcement_of(Mode mode, const std::vector<Attachment>& attached);
Result<Enforcement> enforcement_of(const Tables& tables);

// Whether bans drop anything at present; a warning for everything that keeps them from it.
Result<bool> is_enforced(const Tables& tables, std::vector<std::string>& warnings);

}  // namespace sluice::cli
