#include "doctor/doctor.h"

namespace sluice {

std::vector<Examined> examine(const Patient& patient) {
    std::vector<Examined> examined;
    const auto run_all = [&](std::span<const HostCheck> checks) {
        for (const HostCheck& check : checks)
            examined.push_back({check.name, {}, check.run(patient)});
    };
    run_all(host_checks());
    for (const Card& card : patient.cards)
        for (const CardCheck& check : card_checks())
            examined.push_back({check.name, card.interface.name, check.run(patient, card)});
    run_all(gate_checks());
    run_all(redis_checks());
    return examined;
}

}  // namespace sluice
