// Lockout guard: what speaks against a ban, with the reason, before anything is written.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "gate/source_rules.h"
#include "operate/protected_sources.h"

namespace sluice {

// What the operator may ban: not what is allowed (not even by force), not what is protected or
// suspiciously wide (unless by force). `guarded` are protections that are still to be written.
Status check_ban(SourceRules& rules, const Prefix& prefix, bool forced,
                 const std::vector<ProtectedSource>& guarded);

// What inside the prefix a ban without force does not reach, for people: "192.0.2.1 (a gateway)".
Result<std::vector<std::string>> spared_inside(SourceRules& rules, const Prefix& prefix,
                                               const std::vector<ProtectedSource>& guarded);

}  // namespace sluice
