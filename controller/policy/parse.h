// From configuration text to a validated Policy: whole, or an error with file, line and column.
#pragma once

#include <sluice/service.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/config_tree.h"
#include "policy/policy.h"

namespace sluice {

// One file's text; `file_name` stands in errors.
Result<Policy> parse_policy(std::string_view toml_text, std::string_view file_name);

// The file at `path`, merged with conf.d/*.toml beside it in the order of their names: read, and
// whether it makes sense is still to be seen; and validated.
Result<ConfigTable> load_config(const std::string& path);
Result<Policy> load_policy(const std::string& path);

// A configuration that was read; `file_name` stands in errors about what is missing.
Result<Policy> read_policy(const ConfigTable& config, std::string_view file_name);

// What a gate keeps of a policy's text; a file with more could never be put in force.
inline constexpr size_t kLongestConfig = sizeof(sluice_policy_text::text);
Status check_config_size(std::string_view text);
// The text of one file.
Result<std::string> read_config_text(const std::string& path);

// The names of those files beside `path`, in that order; none where there is no such folder.
Result<std::vector<std::string>> drop_ins(const std::string& path);

}  // namespace sluice
