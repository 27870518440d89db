#include "doctor/patient.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "operate/config_file.h"
#include "operate/gate_access.h"

namespace sluice {

namespace {

constexpr std::chrono::milliseconds kMeasured(500);

// That in force; else the file's. A file that is wrong shows at the next reload or start, so it is
// read in any case.
void take_policy(Patient& patient) {
    if (patient.gate) {
        if (auto installed = current_policy(**patient.gate)) {
            patient.policy = installed->policy;
            patient.applied_s = installed->applied_s;
        }
    }
    // What may not be seen is not missing: the reading says so.
    std::error_code failure;
    if (!std::filesystem::exists(patient.options.config, failure) && !failure)
        return;
    auto config = load_config_file(patient.options.config);
    if (!config)
        patient.config_error = config.error();
    else if (!patient.policy)
        patient.policy = std::move(config->policy);
}

std::vector<std::string> interfaces_of(const Patient& patient) {
    if (!patient.options.interfaces.empty())
        return patient.options.interfaces;
    std::set<std::string> names;
    for (const Attachment& attachment : patient.attachments)
        if (attachment.here && !attachment.lost)
            names.insert(attachment.interface);
    if (patient.policy)
        names.insert(patient.policy->interfaces.begin(), patient.policy->interfaces.end());
    if (names.empty())
        if (const auto outside = default_interface())
            names.insert(*outside);
    return {names.begin(), names.end()};
}

}  // namespace

Result<Patient> look_at_patient(const PatientOptions& options) {
    Patient patient;
    patient.options = options;
    patient.host = look_at_cpus(patient.machine);
    patient.gate = open_gate(options.pin_dir, {});
    if (patient.gate)
        if (auto all = attachments(**patient.gate))
            patient.attachments = *std::move(all);
    take_policy(patient);
    const TuneSettings wishes =
        patient.policy ? patient.policy->tune.value_or(TuneSettings{}) : TuneSettings{};
    std::vector<std::string> ports;
    for (const std::string& name : interfaces_of(patient)) {
        auto interface = find_interface(name);
        if (!interface) {
            if (!options.interfaces.empty())
                return interface.error();
            continue;  // the configuration's own check says so
        }
        Card card;
        card.interface = *std::move(interface);
        card.tuning = look_at(patient.machine, JournalFolder(options.state_dir), name, wishes);
        for (const Attachment& attachment : patient.attachments)
            if (attachment.here && attachment.index == card.interface.index)
                card.attachment = attachment;
        if (card.tuning)
            for (const Port& port : card.tuning->ports)
                ports.push_back(port.name);
        patient.cards.push_back(std::move(card));
    }
    if (patient.policy && patient.policy->redis)
        patient.redis = look_at_redis(*patient.policy->redis, patient.policy->fleet.name);
    patient.rates = measure(patient.machine, ports, kMeasured);
    return patient;
}

bool may_not_see_gate(const Patient& patient) {
    return !patient.gate && patient.gate.error().code == ErrorCode::not_permitted;
}

std::string doctor_as_root(const Patient& patient) {
    std::string command = "sudo sluicectl doctor";
    for (const std::string& name : patient.options.interfaces)
        command += ' ' + name;
    return command;
}

bool has_capability(const Machine& machine, unsigned capability) {
    constexpr std::string_view kEffective = "CapEff:";
    std::istringstream lines(machine.text("/proc/self/status").value_or(""));
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(kEffective)) {
            const uint64_t bits = std::strtoull(line.c_str() + kEffective.size(), nullptr, 16);
            return (bits >> capability & 1) != 0;
        }
    return false;
}

}  // namespace sluice
