#include "policy/tune_reader.h"

#include <array>

#include "base/text.h"

namespace sluice {

namespace {

constexpr std::array kProfiles = {TuneProfile::latency, TuneProfile::balanced, TuneProfile::flood};
// As many as the largest machines have near one card.
constexpr uint64_t kMostReserved = 1'024;

Result<bool> parse_on_drift(std::string_view text) {
    if (text == "alarm")
        return false;
    if (text == "apply")
        return true;
    return failed(in_quotes(text) + " is unknown", "use \"alarm\" or \"apply\"");
}

}  // namespace

std::string_view tune_profile_name(TuneProfile profile) {
    switch (profile) {
        case TuneProfile::latency:
            return "latency";
        case TuneProfile::balanced:
            return "balanced";
        case TuneProfile::flood:
            break;
    }
    return "flood";
}

Result<TuneProfile> parse_tune_profile(std::string_view text) {
    for (const TuneProfile profile : kProfiles)
        if (text == tune_profile_name(profile))
            return profile;
    return make_error(ErrorCode::usage, in_quotes(text) + " is no profile",
                      "use \"latency\", \"balanced\" or \"flood\"");
}

void read_tune(const Field& field, Policy& policy) {
    auto table = field.table("[tune]");
    if (!table)
        return;
    TuneSettings tune;
    if (const auto profile = table->take("profile"))
        tune.profile = profile->parsed(parse_tune_profile, "\"balanced\"").value_or(tune.profile);
    if (const auto cores = table->take("reserve_cores"))
        tune.reserve_cores = static_cast<unsigned>(cores->integer(0, kMostReserved).value_or(0));
    if (const auto on_drift = table->take("on_drift"))
        tune.reapply = on_drift->parsed(parse_on_drift, "\"alarm\"").value_or(false);
    table->finish();
    policy.tune = tune;
}

}  // namespace sluice
