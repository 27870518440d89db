// Whether the gate still costs about what it did when it was last measured with care.
#pragma once

#include <iosfwd>

#include "base/result.h"
#include "contest.h"

namespace sluice::bench {

// false where a case costs far more each time that it is tried.
Result<bool> smoke(Contest& contest, std::ostream& out);

}  // namespace sluice::bench
