#include "fleet/policy_override.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/file.h"
#include "base/text.h"
#include "policy/rule_id.h"

namespace sluice {

namespace {

constexpr std::string_view kMagic = "sluice-overrides-1";
constexpr std::string_view kEnd = "end";
constexpr std::string_view kFleet = "fleet\t";
constexpr std::string_view kHost = "host\t";

Error no_override() {
    return failed("an override makes no sense", "who else writes to its key?");
}

std::string_view next_field(std::string_view& line) {
    const std::string_view field = line.substr(0, line.find('\t'));
    line.remove_prefix(std::min(line.size(), field.size() + 1));
    return field;
}

}  // namespace

std::string format_override(const PolicyOverride& entry) {
    std::string line = std::to_string(entry.until_ms) + '\t' + entry.actor + '\t' + entry.reason +
                       '\t' + entry.change.service;
    for (const auto& [key, value] : entry.change.values)
        line += '\t' + key + '=' + value;
    return line;
}

Result<PolicyOverride> parse_override(std::string_view line) {
    PolicyOverride entry;
    const std::string_view until = next_field(line);
    const auto [end, failure] =
        std::from_chars(until.data(), until.data() + until.size(), entry.until_ms);
    if (failure != std::errc{} || end != until.data() + until.size())
        return no_override();
    entry.actor = printable(next_field(line));
    entry.reason = printable(next_field(line));
    entry.change.service = next_field(line);
    if (!is_valid_name(entry.change.service) || line.empty())
        return no_override();
    while (!line.empty()) {
        auto value = parse_change_value(next_field(line));
        if (!value)
            return no_override();
        entry.change.values.push_back(*std::move(value));
    }
    return entry;
}

Status apply_overrides(ConfigTable& config, const std::vector<PolicyOverride>& overrides) {
    for (const bool by_fleet : {true, false})
        for (const PolicyOverride& entry : overrides) {
            if (entry.by_fleet != by_fleet)
                continue;
            // A service that a later version of the policy has no more has no override either.
            const Status changed = change_service(config, entry.change);
            if (!changed && changed.error().code != ErrorCode::not_found)
                return changed;
        }
    return {};
}

void put_override(std::vector<PolicyOverride>& overrides, PolicyOverride entry) {
    (void)drop_override(overrides, entry.change.service, entry.by_fleet);
    overrides.push_back(std::move(entry));
}

bool drop_override(std::vector<PolicyOverride>& overrides, const std::string& service,
                   bool by_fleet) {
    return std::erase_if(overrides, [&](const PolicyOverride& entry) {
               return entry.change.service == service && entry.by_fleet == by_fleet;
           }) != 0;
}

bool drop_ended(std::vector<PolicyOverride>& overrides, uint64_t now_ms) {
    return std::erase_if(overrides, [&](const PolicyOverride& entry) {
               return entry.until_ms <= now_ms;
           }) != 0;
}

std::vector<PolicyOverride> OverrideFile::load() const {
    const auto text = read_file(path_);
    if (!text)
        return {};
    std::istringstream lines(*text);
    std::string line;
    if (!std::getline(lines, line) || line != kMagic)
        return {};
    std::vector<PolicyOverride> overrides;
    while (std::getline(lines, line) && line != kEnd) {
        const bool by_fleet = line.starts_with(kFleet);
        if (!by_fleet && !line.starts_with(kHost))
            return {};
        auto entry =
            parse_override(std::string_view(line).substr((by_fleet ? kFleet : kHost).size()));
        if (!entry)
            return {};
        entry->by_fleet = by_fleet;
        overrides.push_back(*std::move(entry));
    }
    // A torn file has no end: better none than half of them.
    return line == kEnd ? overrides : std::vector<PolicyOverride>();
}

Status OverrideFile::save(const std::vector<PolicyOverride>& overrides) const {
    std::string text = std::string(kMagic) + '\n';
    for (const PolicyOverride& entry : overrides)
        text += std::string(entry.by_fleet ? kFleet : kHost) + format_override(entry) + '\n';
    return replace_file(path_, text + std::string(kEnd) + '\n');
}

}  // namespace sluice
