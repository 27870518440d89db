// A configuration tree as TOML text, which reads back as the same tree. Comments are not in it.
#pragma once

#include <string>

#include "policy/config_tree.h"

namespace sluice {

std::string config_text(const ConfigTable& config);

}  // namespace sluice
