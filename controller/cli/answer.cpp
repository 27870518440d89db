#include "cli/answer.h"

#include <utility>

namespace sluice::cli {

Json to_json(const Answer& answer) {
    Json data = answer.data;
    if (!answer.warnings.empty())
        data["warnings"] = answer.warnings;
    return {{"ok", true}, {"data", std::move(data)}};
}

}  // namespace sluice::cli
