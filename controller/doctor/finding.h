// What one check found.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

enum class Outcome : uint8_t {
    pass,
    warn,  // works, and could be better or will bite later
    fail,  // does not work, or not as it was asked to
    skip   // could not be looked at; `mend` says what it would take
};
std::string_view outcome_name(Outcome outcome);  // "PASS", …

struct Finding {
    Outcome outcome = Outcome::pass;
    std::string seen;  // in a few words
    std::string why;   // it matters; empty where all is well
    std::string mend;  // a command, as it can be typed
};

Finding passed(std::string seen);
Finding warned(std::string seen, std::string why, std::string mend);
Finding failed_check(std::string seen, std::string why, std::string mend);
Finding skipped(std::string seen, std::string needs = {});

}  // namespace sluice
