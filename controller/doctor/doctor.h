// The table of checks: each has a stable name, and looks at the host or at one card.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/finding.h"
#include "doctor/patient.h"

namespace sluice {

struct HostCheck {
    std::string_view name;
    Finding (*run)(const Patient& patient);
};

struct CardCheck {
    std::string_view name;
    Finding (*run)(const Patient& patient, const Card& card);
};

// In the order in which trouble is to be mended.
std::span<const HostCheck> host_checks();
std::span<const HostCheck> gate_checks();
std::span<const HostCheck> redis_checks();
std::span<const CardCheck> card_checks();

struct Examined {
    std::string_view check;
    std::string interface;  // empty: of the host
    Finding finding;
};
std::vector<Examined> examine(const Patient& patient);

}  // namespace sluice
