// sluicectl confirm: keep a change that would be taken back otherwise.
#include <algorithm>

#include "base/suggest.h"
#include "base/text.h"
#include "cli/command_line.h"
#include "cli/tune_root.h"
#include "gate/policy_store.h"
#include "gate/source_rules.h"
#include "gate/switches.h"
#include "operate/policy_lists.h"
#include "operate/protected_sources.h"
#include "tune/apply.h"

namespace sluice::cli {

namespace {

// "all" by its names.
std::string what_waits(const Tables& tables, const std::string& id) {
    if (id != "all")
        return id;
    std::string names;
    for (const SwitchEntry& entry : list_switches(tables))
        if (entry.waits_for_confirmation)
            names += (names.empty() ? "" : ", ") + entry.id;
    return names.empty() ? id : names;
}

Error suggested(Error error, const Tables& tables, const std::string& id) {
    const auto switches = list_switches(tables);
    std::vector<std::string_view> waiting;
    for (const SwitchEntry& entry : switches)
        if (entry.waits_for_confirmation)
            waiting.push_back(entry.id);
    if (const auto meant = nearest_word(id, waiting))
        error.hint = "did you mean " + in_quotes(*meant) + "?";
    return error;
}

constexpr std::string_view kTuning = "tune.";

// Those that wait, of all interfaces or of one; that nothing waits is an error for the one alone.
Result<std::vector<std::string>> confirm_tunings(const std::string& id, const Root& root,
                                                 const Session& session,
                                                 std::vector<std::string>& warnings) {
    const auto machine = machine_at(root);
    if (!machine)
        return machine.error();
    const JournalFolder journals = journals_at(root, session);
    std::vector<std::string> confirmed;
    for (const std::string& interface : journals.interfaces()) {
        const std::string own = std::string(kTuning) + interface;
        const auto journal = journals.read(interface);
        if (!journal || !awaits_confirmation(*machine, *journal) || (id != "all" && id != own))
            continue;
        // What is done to a tree is nothing that was done to this machine.
        if (!root)
            session.record({"confirm", own, "", "to stay", ""}, warnings);
        if (const Status done = confirm_tuning(*machine, journals, interface); !done)
            return done.error();
        session.made();
        confirmed.push_back(own);
    }
    if (confirmed.empty() && id != "all")
        return make_error(ErrorCode::not_found, "no " + in_quotes(id) + " waits",
                          "what is tuned: sluicectl tune verify " + id.substr(kTuning.size()));
    return confirmed;
}

Result<Answer> confirm_gate(const std::string& id, const Session& session) {
    auto gate = session.open_to_write();
    if (!gate)
        return gate.error();
    Tables& tables = gate->tables;
    const Operator& who = session.who;
    SourceRules rules(tables);
    if (const Status guarded = refresh_protection(tables, rules, who); !guarded)
        return guarded.error();
    Answer answer;
    session.record({"confirm", what_waits(tables, id), "", "to stay", ""}, answer.warnings);
    const auto confirmed = confirm_switches(tables, id);
    if (!confirmed)
        return suggested(confirmed.error(), tables, id);
    session.made();
    // Its allows held for the time of the confirmation only.
    if (std::find(confirmed->begin(), confirmed->end(), "policy") != confirmed->end()) {
        const auto policy = current_policy(tables);
        if (!policy)
            return policy.error();
        if (const Status lists = install_lists(rules, policy->policy, who); !lists)
            return lists.error();
    }
    answer.changed = true;
    answer.data = {{"confirmed", *confirmed}};
    if (const Status looked = warn_of_own_ban(rules, who, answer.warnings); !looked)
        return looked.error();
    return answer;
}

Result<Answer> run(const std::string& id, const Root& root, const Session& session) {
    // Its folders are not those of whoever asks.
    if (root && session.heavy != nullptr)
        return make_error(ErrorCode::usage, "the daemon takes no --root");
    if (id != "all" && !id.starts_with(kTuning)) {
        if (root)
            return make_error(ErrorCode::usage,
                              "--root has no gate, so " + in_quotes(id) + " cannot wait there",
                              "what can: tune.IFACE");
        return confirm_gate(id, session);
    }
    Answer tuned;
    const auto tunings = confirm_tunings(id, root, session, tuned.warnings);
    if (!tunings)
        return tunings.error();
    tuned.changed = !tunings->empty();
    tuned.data = {{"confirmed", *tunings}};
    if (id != "all" || root)
        return tuned;
    auto gate = confirm_gate(id, session);
    // Tuning needs no gate; what waits in one and could not be confirmed goes back.
    const bool is_no_gate = !gate && (gate.error().code == ErrorCode::not_found ||
                                      gate.error().code == ErrorCode::unreachable);
    if (is_no_gate && tuned.changed)
        return tuned;
    if (!gate)
        return tuned.changed
                   ? gate.error().with_context("tuning is confirmed, but the gate's change")
                   : gate.error();
    for (const std::string& tuning : *tunings)
        gate->data["confirmed"].push_back(tuning);
    return gate;
}

void show(const Json& data, Screen& screen) {
    for (const Json& id : data["confirmed"])
        screen.line("Confirmed: " + id.get<std::string>() + '.');
}

}  // namespace

void add_confirm(CommandLine& line) {
    auto id = std::make_shared<std::string>("all");
    CLI::App* app = line.add("confirm", "Keep a change that waits for it");
    app->add_option("ID", *id, "As in `sluicectl switch list`; default: all that wait");
    auto root = std::make_shared<Root>();
    add_root(app, *root);
    line.handle(
        app, [id, root](const Session& session) { return run(*id, *root, session); }, show);
}

}  // namespace sluice::cli
