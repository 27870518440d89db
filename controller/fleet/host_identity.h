// Who this host is to its fleet.
#pragma once

#include <string>

#include "gate/tables.h"

namespace sluice {

// Of the gate: 128 bits in hex; empty until draw_host_id().
std::string host_id(const Tables& tables);
// Another one, by chance.
void draw_host_id(Tables& tables);
// What the machine is called; others may be called alike.
std::string machine_name();

}  // namespace sluice
