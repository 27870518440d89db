#include "daemon/tune_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "observe/families.h"
#include "tune/apply.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;

// irqbalance moves interrupts every 10 s, so that each look sees what it did.
constexpr auto kPeriod = 15s;
// With somebody who tunes by hand at this moment.
constexpr std::chrono::milliseconds kPatience(5'000);

void warn(const std::string& interface, const Error& error) {
    log(LogLevel::warning,
        "tune " + interface + ": " + error.message + (error.hint.empty() ? "" : "; " + error.hint));
}

void tune(const Machine& machine, const JournalFolder& journals, const std::string& interface,
          const TuneSettings& wishes) {
    const auto report =
        apply_tuning(machine, journals, interface, {.wishes = wishes, .patience = kPatience});
    if (!report) {
        warn(interface, report.error());
        return;
    }
    for (const Change& change : report->done)
        log(LogLevel::info, change.what + ": " + change.before + " → " + change.after);
    for (const Refusal& refusal : report->refused)
        log(LogLevel::warning, refusal.what + " was refused: " + refusal.reason);
}

// Sets again what drifted; the next look will do where somebody tunes at this moment.
void mend(const Machine& machine, const JournalFolder& journals, const std::string& interface,
          TuneStanding& standing) {
    const auto drifts = drifted(machine, journals, interface);
    if (!drifts || drifts->empty())
        return;
    const auto mended = set_again(machine, journals, interface);
    if (!mended)
        return;  // busy, or just taken back
    standing.set_again += mended->set;
    standing.not_set_again += mended->refused.size();
    if (mended->set != 0)
        log(LogLevel::warning, "tune " + interface + ": " + std::to_string(mended->set) +
                                   " settings had drifted, and are set again");
    for (const Refusal& refusal : mended->refused)
        log(LogLevel::warning,
            "tune " + interface + ": not set again: " + refusal.what + ": " + refusal.reason);
}

}  // namespace

void tune_interfaces(const Policy& policy, const std::string& state_dir) {
    if (!policy.tune)
        return;
    const Machine machine = Machine::live();
    const JournalFolder journals(state_dir);
    for (const std::string& interface : policy.interfaces)
        tune(machine, journals, interface, *policy.tune);
}

TuneWatch::TuneWatch(std::string state_dir, bool sets_again)
    : state_dir_(std::move(state_dir)),
      sets_again_(sets_again),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

TuneStanding TuneWatch::standing() const {
    const std::lock_guard lock(mutex_);
    return standing_;
}

void TuneWatch::run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        look();
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, stop, kPeriod, [] { return false; });
    }
}

void TuneWatch::look() {
    const Machine machine = Machine::live();
    const JournalFolder journals(state_dir_);
    const TuneStanding last = standing();
    TuneStanding now;
    now.set_again = last.set_again;
    now.not_set_again = last.not_set_again;
    for (const std::string& interface : journals.interfaces()) {
        TunedInterface tuned{.name = interface, .drifted = 0, .error = {}, .mend = {}};
        Error error;
        if (const auto journal = journals.read(interface); journal && is_overdue(*journal))
            if (const Status undone = undo_if_overdue(machine, journals, interface, {});
                !undone && !undone.error().busy)
                error = undone.error();
        if (sets_again_ && error.message.empty())
            mend(machine, journals, interface, now);
        const auto drifts = drifted(machine, journals, interface);
        if (drifts)
            tuned.drifted = drifts->size();
        else if (drifts.error().code == ErrorCode::not_found)
            continue;  // undone, by whomever
        else if (error.message.empty())
            error = drifts.error();
        tuned.error = error.message;
        tuned.mend = error.hint;
        const auto known = std::ranges::find(last.interfaces, interface, &TunedInterface::name);
        const bool is_new = known == last.interfaces.end() || known->error != tuned.error;
        if (!tuned.error.empty() && is_new)
            warn(interface, error);
        now.interfaces.push_back(std::move(tuned));
    }
    const std::lock_guard lock(mutex_);
    standing_ = std::move(now);
}

void add_tune_metrics(const TuneStanding& standing, Families& out) {
    using prometheus::MetricType;
    if (standing.interfaces.empty())
        return;
    out.begin("sluice_tune_drift", "Settings of the host that are not as they were tuned",
              MetricType::Gauge);
    for (const TunedInterface& tuned : standing.interfaces)
        if (tuned.error.empty())
            out.add({{"iface", tuned.name}}, static_cast<double>(tuned.drifted));
    out.one("sluice_tune_set_again_total",
            "Settings of the host that had drifted, and were set again", MetricType::Counter,
            static_cast<double>(standing.set_again));
    out.one("sluice_tune_set_again_failures_total",
            "Settings of the host that had drifted, and could not be set again",
            MetricType::Counter, static_cast<double>(standing.not_set_again));
}

}  // namespace sluice
