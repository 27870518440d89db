#include "tune/apply.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace sluice {

namespace {

using std::chrono::duration_cast, std::chrono::milliseconds;

// Between two looks at whether a change was confirmed.
constexpr milliseconds kPause(100);
constexpr milliseconds kPatience(5'000);

// Remembers what is there, where that is not known yet; what does not exist needs no way back.
Status remember(const Machine& machine, const Setting& setting, Journal& journal) {
    if (journal.find(setting) != nullptr)
        return {};
    auto before = machine.get(setting);
    // A single queue refuses to show its mask.
    if (!before && before.error().code == ErrorCode::not_found)
        return {};
    if (!before)
        return before.error();
    journal.entries.push_back({setting, *std::move(before), std::nullopt});
    return {};
}

// All that a driver sets back when its channels change.
std::vector<Setting> at_risk(const Port& port) {
    std::vector<Setting> settings = {{SettingKind::device_part, port.name, DevicePart::coalescing},
                                     {SettingKind::device_part, port.name, DevicePart::spread}};
    for (const QueueIrq& irq : port.irqs)
        settings.push_back({SettingKind::irq, irq.name});
    for (const ReceiveQueue& queue : port.receive)
        for (const char* file : {"/rps_cpus", "/rps_flow_cnt"})
            settings.push_back(
                {SettingKind::file, queue_folder(port.name, true, queue.number) + file});
    for (const SendQueue& queue : port.send)
        if (queue.xps)
            settings.push_back(
                {SettingKind::file, queue_folder(port.name, false, queue.number) + "/xps_cpus"});
    return settings;
}

// One half of a plan: remembered on disk as a whole, then done one by one.
class Stage {
  public:
    Stage(const Machine& machine, const JournalFolder& journals, const ApplyOptions& options,
          Journal& journal, ApplyReport& report)
        : machine_(machine),
          journals_(journals),
          options_(options),
          journal_(journal),
          report_(report) {}

    Status run(const std::vector<Change>& changes) {
        for (const Change& change : changes) {
            if (const Status known = remember(machine_, change.setting, journal_); !known)
                return known;
            if (JournalEntry* entry = journal_.find(change.setting))
                entry->wanted = change.value;
        }
        if (const Status written = journals_.write(journal_); !written)
            return written;
        for (const Change& change : changes)
            if (const Status done = make(change); !done)
                return done;
        return {};
    }

  private:
    Status make(const Change& change) {
        if (options_.before_change)
            options_.before_change(change);
        const Status set = machine_.set(change.setting, change.value);
        if (set) {
            report_.done.push_back(change);
            return {};
        }
        if (!change.is_optional)
            return set.error().with_context(change.what);
        report_.refused.push_back({change.what, set.error().message});
        if (JournalEntry* entry = journal_.find(change.setting))
            entry->wanted.reset();
        return {};
    }

    const Machine& machine_;
    const JournalFolder& journals_;
    const ApplyOptions& options_;
    Journal& journal_;
    ApplyReport& report_;
};

std::vector<Change> half(const Plan& plan, bool of_device) {
    std::vector<Change> changes;
    std::ranges::copy_if(plan.changes, std::back_inserter(changes),
                         [&](const Change& change) { return is_of_device(change) == of_device; });
    return changes;
}

// Parts of devices first and in their order, because they set back what follows.
std::vector<JournalEntry> in_order_of_return(const Journal& journal) {
    std::vector<JournalEntry> entries = journal.entries;
    std::ranges::stable_sort(entries, {}, [](const JournalEntry& entry) {
        const bool of_device = entry.setting.kind == SettingKind::device_part;
        return std::pair(!of_device, of_device ? static_cast<int>(entry.setting.part) : 0);
    });
    return entries;
}

// Its caller holds the lock.
Result<RevertReport> put_back(const Machine& machine, const JournalFolder& journals,
                              const Journal& journal) {
    RevertReport report;
    report.was_rebooted = journal.boot != machine.boot();
    std::string failures;
    size_t failed_count = 0;
    for (const JournalEntry& entry : in_order_of_return(journal)) {
        if (report.was_rebooted)
            break;
        const auto now = machine.get(entry.setting);
        if (!now && now.error().code == ErrorCode::not_found) {
            report.gone.push_back(entry.setting);
            continue;
        }
        if (now && *now == entry.before)
            continue;
        if (const Status set = machine.set(entry.setting, entry.before); !set) {
            failures += (failures.empty() ? "" : "; ") + entry.setting.to_string() + ": " +
                        set.error().message;
            ++failed_count;
        } else {
            report.restored.push_back(entry.setting);
        }
    }
    if (failed_count != 0)
        return failed("not put back: " + failures,
                      "what can be is as it was; once the cause is mended: sluicectl tune revert " +
                          journal.interface);
    if (const Status removed = journals.remove(journal.interface); !removed)
        return removed.error();
    return report;
}

// The journal to go on with: what was there before the first of all applies is what counts.
Result<Journal> journal_to_begin_with(const Machine& machine, const JournalFolder& journals,
                                      const std::string& interface, ApplyReport& report) {
    auto journal = journals.read(interface);
    const Journal fresh{.interface = interface, .boot = machine.boot()};
    if (!journal)
        return journal.error().code == ErrorCode::not_found ? Result<Journal>(fresh)
                                                            : journal.error();
    if (journal->boot != fresh.boot)
        return fresh;
    if (journal->is_done && journal->deadline_ms && !is_overdue(*journal))
        return failed("an earlier change of " + interface + " waits for its confirmation",
                      "keep it: sluicectl confirm tune." + interface +
                          "; or undo it: sluicectl tune revert " + interface);
    if (journal->is_done && !journal->deadline_ms)
        return journal;
    report.was_cut_off = true;
    if (const auto reverted = put_back(machine, journals, *journal); !reverted)
        return reverted.error();
    return fresh;
}

Status run_stages(const Machine& machine, const JournalFolder& journals, const PlanInput& input,
                  const ApplyOptions& options, Journal& journal, ApplyReport& report) {
    Stage stage(machine, journals, options, journal, report);
    const auto of_device = half(make_plan(input), true);
    if (!of_device.empty()) {
        for (const Change& change : of_device)
            if (const Status known = remember(machine, change.setting, journal); !known)
                return known;
        for (const Port& port : input.ports)
            for (const Setting& setting : at_risk(port))
                if (const Status known = remember(machine, setting, journal); !known)
                    return known;
        if (const Status done = stage.run(of_device); !done)
            return done;
    }
    const auto again = look_at(machine, input.interface, options.wishes);
    if (!again)
        return again.error();
    const auto rest = half(make_plan(*again), false);
    return rest.empty() ? Status() : stage.run(rest);
}

}  // namespace

Result<ApplyReport> apply_tuning(const Machine& machine, const JournalFolder& journals,
                                 const std::string& interface, const ApplyOptions& options) {
    // No more than that: what a death left half-written is put back before it is read.
    if (const auto ports = ports_below(machine, interface); !ports)
        return ports.error();
    const auto lock = journals.lock(options.patience);
    if (!lock)
        return lock.error();
    ApplyReport report;
    auto journal = journal_to_begin_with(machine, journals, interface, report);
    if (!journal)
        return journal.error();
    const auto input = look_at(machine, interface, options.wishes);
    if (!input)
        return input.error();
    const Plan plan = make_plan(*input);
    if (!plan.hindrances.empty())
        return make_error(ErrorCode::not_permitted, plan.hindrances.front());
    report.cautions = plan.cautions;
    report.notes = plan.notes;
    if (plan.is_done())
        return report;
    journal->is_done = false;
    if (options.confirm)
        journal->deadline_ms =
            boot_time_ms() +
            static_cast<uint64_t>(duration_cast<milliseconds>(*options.confirm).count());
    if (const Status done = run_stages(machine, journals, *input, options, *journal, report);
        !done) {
        Error error = done.error();
        const auto back = put_back(machine, journals, *journal);
        error.hint += (error.hint.empty() ? "" : "; ") +
                      (back ? "all is as it was before" : back.error().message);
        return error;
    }
    journal->is_done = true;
    if (const Status written = journals.write(*journal); !written)
        return written.error();
    return report;
}

bool is_overdue(const Journal& journal) {
    return journal.deadline_ms && boot_time_ms() >= *journal.deadline_ms;
}

Status confirm_tuning(const JournalFolder& journals, const std::string& interface) {
    const auto lock = journals.lock(kPatience);
    if (!lock)
        return lock.error();
    auto journal = journals.read(interface);
    if (!journal)
        return journal.error();
    if (!journal->deadline_ms || is_overdue(*journal))
        return make_error(ErrorCode::not_found, "no change of " + interface + " waits");
    journal->deadline_ms.reset();
    return journals.write(*journal);
}

Status undo_in_time(const Machine& machine, const JournalFolder& journals,
                    const std::string& interface) {
    for (;;) {
        const auto journal = journals.read(interface);
        if (!journal)
            return journal.error().code == ErrorCode::not_found ? Status() : journal.error();
        if (!journal->deadline_ms)
            return {};
        if (is_overdue(*journal))
            break;
        std::this_thread::sleep_for(kPause);
    }
    const auto lock = journals.lock(kPatience);
    if (!lock)
        return lock.error();
    // Confirmed at the last moment, or undone by somebody.
    const auto journal = journals.read(interface);
    if (!journal || !is_overdue(*journal))
        return {};
    const auto reverted = put_back(machine, journals, *journal);
    return reverted ? Status() : reverted.error();
}

Result<std::vector<Drift>> drifted(const Machine& machine, const JournalFolder& journals,
                                   const std::string& interface) {
    const auto journal = journals.read(interface);
    if (!journal)
        return journal.error();
    if (journal->boot != machine.boot())
        return failed("this machine was started anew since " + interface + " was tuned",
                      "tune it again: sluicectl tune apply " + interface +
                          "; [tune] in the configuration does so at each start");
    if (!journal->is_done)
        return failed("the last change of " + interface + " was cut off",
                      "sluicectl tune revert " + interface);
    std::vector<Drift> drifts;
    for (const JournalEntry& entry : journal->entries) {
        if (!entry.wanted)
            continue;
        const auto now = machine.get(entry.setting);
        if (!now && now.error().code != ErrorCode::not_found)
            return now.error();
        if (!now || !is_same_value(entry.setting, *entry.wanted, *now))
            drifts.push_back({entry.setting, *entry.wanted, now ? *now : std::string()});
    }
    return drifts;
}

Status set_again(const Machine& machine, const std::vector<Drift>& drifts) {
    Status status;
    for (const Drift& drift : drifts)
        if (const Status set = machine.set(drift.setting, drift.wanted); !set)
            status = set.error().with_context(drift.setting.to_string());
    return status;
}

Result<RevertReport> revert_tuning(const Machine& machine, const JournalFolder& journals,
                                   const std::string& interface, milliseconds patience) {
    const auto lock = journals.lock(patience);
    if (!lock)
        return lock.error();
    const auto journal = journals.read(interface);
    if (!journal)
        return journal.error();
    return put_back(machine, journals, *journal);
}

}  // namespace sluice
