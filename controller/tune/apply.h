// A plan put in force as a transaction: journalled, verified, and undone where it was not wanted.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tune/journal.h"
#include "tune/machine.h"
#include "tune/plan.h"

namespace sluice {

struct ApplyOptions {
    TuneSettings wishes = {};
    std::chrono::milliseconds patience = {};  // with others who tune
    // Undone after it, unless confirm_tuning() comes; somebody has to wait: undo_in_time().
    std::optional<std::chrono::nanoseconds> confirm = {};
    // Called once, with the journal on disk and nothing changed yet; nothing is where it fails.
    std::function<Status()> before_first = {};
    std::function<void(const Change&)> before_change = {};  // progress, for people
};

struct Refusal {
    std::string what;
    std::string reason;  // the kernel's or the driver's
};

struct ApplyReport {
    std::vector<Change> done;
    std::vector<Refusal> refused;       // optional changes, which are left as they were
    std::vector<std::string> cautions;  // of the plan
    std::vector<std::string> notes;
    bool was_cut_off = false;  // an earlier one, which was undone first
};

// All of the plan that is not optional, or nothing: what was done is undone where a part fails.
// First the device, then a second look, because that moves queues and interrupts, then the rest.
// Undone, it leaves what was kept before it.
Result<ApplyReport> apply_tuning(const Machine& machine, const JournalFolder& journals,
                                 const std::string& interface, const ApplyOptions& options);

// Whether a change can still be confirmed: its time is not over, nor the boot that it was made in.
bool awaits_confirmation(const Machine& machine, const Journal& journal);
// To stay. ErrorCode::not_found where nothing waits.
Status confirm_tuning(const Machine& machine, const JournalFolder& journals,
                      const std::string& interface);
// Its time for being confirmed is over.
bool is_overdue(const Journal& journal);
// Undoes a change that is overdue, down to what was kept before it; nothing where there is none.
// Error::busy where somebody tunes at this moment, or XDP is in the way: another try may do.
Status undo_if_overdue(const Machine& machine, const JournalFolder& journals,
                       const std::string& interface, std::chrono::milliseconds patience);
// Returns once it is confirmed, undone by somebody, or undone here because its time is over; tries
// until it can.
Status undo_in_time(const Machine& machine, const JournalFolder& journals,
                    const std::string& interface);

struct Drift {
    Setting setting;
    std::string wanted, found;  // as written; found is empty where it is gone
};
// What is not as it was set. Errors where nothing is tuned, what was tuned is gone since a boot, or
// should have been undone by now.
Result<std::vector<Drift>> drifted(const Machine& machine, const JournalFolder& journals,
                                   const std::string& interface);

struct MendReport {
    size_t set = 0;
    std::vector<Refusal> refused;
};
// Sets that again. Error::busy where somebody tunes at this moment.
Result<MendReport> set_again(const Machine& machine, const JournalFolder& journals,
                             const std::string& interface);

struct RevertReport {
    std::vector<Setting> restored;
    std::vector<Setting> gone;  // queues that only tuning had made
    bool was_rebooted = false;  // nothing to undo
};
// Every byte as it was before the first apply; the journal stays where something cannot be put
// back. Error::busy, with nothing changed, where XDP holds the number of queues.
Result<RevertReport> revert_tuning(const Machine& machine, const JournalFolder& journals,
                                   const std::string& interface,
                                   std::chrono::milliseconds patience);

}  // namespace sluice
