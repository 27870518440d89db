// What tuning plans, did and found: as JSON, and as text made from it.
#pragma once

#include "cli/answer.h"
#include "cli/screen.h"
#include "tune/apply.h"
#include "tune/measure.h"
#include "tune/plan.h"

namespace sluice::cli {

Json plan_json(const Plan& plan);
void show_plan(const Json& data, Screen& screen);

Json report_json(const std::string& interface, const ApplyReport& report);
Json rates_json(const Rates& before, const Rates& after);
// Of report_json() with "confirm_within_s", "irqbalance" and "rates".
void show_report(const Json& data, Screen& screen);

Json drift_json(const std::string& interface, const std::vector<Drift>& drifts);
void show_drift(const Json& data, Screen& screen);

Json revert_json(const std::string& interface, const RevertReport& report);
void show_revert(const Json& data, Screen& screen);

}  // namespace sluice::cli
