#include "smoke.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <ostream>
#include <string_view>

#include "report.h"

namespace sluice::bench {

namespace {

// The ratio to the bare drop on a quiet machine. Bring it up to date when the packet path changes.
struct Known {
    std::string_view name;
    std::string_view sources;
    double ratio;
};
constexpr std::array kKnown = {
    Known{"banned network", "1", 1.35},    Known{"banned address", "1", 1.4},
    Known{"banned address", "1000", 1.45}, Known{"unlimited", "1", 1.4},
    Known{"over packets", "1", 1.75},      Known{"over packets", "1000", 1.85},
    Known{"over packets", "100000", 2.3},  Known{"within", "1", 1.75},
    Known{"within", "1000", 2.1},          Known{"within", "100000", 2.8},
};

// A case may cost so much more than it is known to: less than twice, more than noise.
constexpr double kMargin = 1.6;
// What disturbs a measurement only ever makes it slower, so the best of some tries counts.
constexpr int kTries = 4;

}  // namespace

Result<bool> smoke(Contest& contest, std::ostream& out) {
    const auto cases = all_cases();
    bool all_well = true;
    for (const Known& known : kKnown) {
        const auto which = std::ranges::find_if(cases, [&](const Case& one) {
            return one.name == known.name && one.sources() == known.sources;
        });
        if (which == cases.end())
            return failed("there is no case " + std::string(known.name));
        const double most = known.ratio * kMargin;
        double best = 0;
        for (int i = 0; i < kTries && (i == 0 || best > most); i++) {
            const auto measured = contest.run(*which);
            if (!measured)
                return measured.error().with_context(which->name);
            const Summary summary = summarize(*measured);
            best = i == 0 ? summary.ratio.median : std::min(best, summary.ratio.median);
        }
        all_well = all_well && best <= most;
        out << (best <= most ? "ok    " : "SLOW  ") << std::left << std::setw(16) << known.name
            << std::right << std::setw(7) << known.sources << " sources: " << std::fixed
            << std::setprecision(2) << best << " times bare, known as " << known.ratio
            << ", at most " << most << std::endl;
    }
    return all_well;
}

}  // namespace sluice::bench
