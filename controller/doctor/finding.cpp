#include "doctor/finding.h"

#include <utility>

namespace sluice {

std::string_view outcome_name(Outcome outcome) {
    switch (outcome) {
        case Outcome::pass:
            return "PASS";
        case Outcome::warn:
            return "WARN";
        case Outcome::fail:
            return "FAIL";
        case Outcome::skip:
            break;
    }
    return "SKIP";
}

Finding passed(std::string seen) {
    return {Outcome::pass, std::move(seen), {}, {}};
}

Finding warned(std::string seen, std::string why, std::string mend) {
    return {Outcome::warn, std::move(seen), std::move(why), std::move(mend)};
}

Finding failed_check(std::string seen, std::string why, std::string mend) {
    return {Outcome::fail, std::move(seen), std::move(why), std::move(mend)};
}

Finding skipped(std::string seen, std::string needs) {
    return {Outcome::skip, std::move(seen), {}, std::move(needs)};
}

}  // namespace sluice
