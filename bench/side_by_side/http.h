// The same page for comparison: what it costs a web server to say no, and how its visitors fare
// while somebody floods.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>

#include "base/result.h"
#include "contender.h"

namespace sluice::bench {

struct HttpOptions {
    unsigned rounds = 3;
    unsigned seconds = 2;  // each
};

// Empty, with a line that says why, where nginx or wrk is missing.
Result<nlohmann::json> measure_rejections(const HttpOptions& options, std::ostream& out);
Result<nlohmann::json> measure_visitors(const Cast& cast, const BareProgram& programs,
                                        const HttpOptions& options, std::ostream& out);

}  // namespace sluice::bench
