#include "cli/ban_checks.h"

#include "operate/protected_sources.h"
#include "policy/rule_id.h"

namespace sluice::cli {

Status check_source(const std::string& source) {
    if (!is_valid_name(source))
        return make_error(ErrorCode::usage, "--source: \"" + source + "\" is no name of a list",
                          "use up to 32 of a-z, 0-9 and -");
    if (is_reserved_list(source))
        return make_error(ErrorCode::usage, "--source: \"" + source + "\" is kept by Sluice itself",
                          "use another name");
    return {};
}

}  // namespace sluice::cli
