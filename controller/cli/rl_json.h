// How another limiter's policies are followed, in JSON and for people.
#pragma once

#include <string>
#include <vector>

#include "cli/answer.h"
#include "cli/screen.h"
#include "cli/session.h"
#include "gate/why.h"

namespace sluice::cli {

// `rl` of services: of each that Redis says anything of, what it says there and means here.
Json rl_services_json(const RlReport& report);
void show_rl_services(const Json& services, Screen& screen);

// `rl` of status; null where no other limiter is followed.
Json rl_json(const RlReport& report, std::vector<std::string>& warnings);
std::string rl_text(const Json& rl);

// Where what decides is such a limit, that it is one.
void name_rl(const RlReport& report, Why& why);

}  // namespace sluice::cli
