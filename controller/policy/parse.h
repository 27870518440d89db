// From configuration text to a validated Policy: whole, or an error with file, line and column.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/policy.h"

namespace sluice {

// One file's text; `file_name` stands in errors.
Result<Policy> parse_policy(std::string_view toml_text, std::string_view file_name);

// The file at `path`, merged with conf.d/*.toml beside it in the order of their names.
Result<Policy> load_policy(const std::string& path);

// The names of those files beside `path`, in that order; none where there is no such folder.
Result<std::vector<std::string>> drop_ins(const std::string& path);

}  // namespace sluice
