#include "fleet/policy_override.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include "base/file.h"
#include "base/text.h"
#include "policy/rule_id.h"

namespace sluice {

namespace {

constexpr std::string_view kMagic = "sluice-overrides-2";
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

std::optional<uint64_t> parse_number(std::string_view text) {
    uint64_t number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return number;
}

// The first line of the file: when it was written.
std::optional<Moment> parse_head(std::string_view line) {
    if (next_field(line) != kMagic)
        return std::nullopt;
    const std::string boot(next_field(line));
    const auto boot_ms = parse_number(next_field(line)), wall_ms = parse_number(next_field(line));
    return boot_ms && wall_ms ? std::optional(Moment{boot, *boot_ms, *wall_ms}) : std::nullopt;
}

// A time of the boot clock of then as one of now. After another boot only the wall clock says how
// long that was; if it was set back, nothing lasts longer for it.
uint64_t in_this_boot(uint64_t until_ms, const Moment& then, const Moment& now) {
    if (then.boot == now.boot)
        return until_ms;
    const uint64_t left_ms = until_ms - std::min(until_ms, then.boot_ms);
    const uint64_t passed_ms = now.wall_ms - std::min(now.wall_ms, then.wall_ms);
    return now.boot_ms + left_ms - std::min(left_ms, passed_ms);
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
    const auto until_ms = parse_number(next_field(line));
    if (!until_ms)
        return no_override();
    entry.until_ms = *until_ms;
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

std::string describe(const PolicyOverride& entry) {
    return std::string(entry.by_fleet ? "the fleet's" : "this host's") + " override of " +
           entry.change.service + ", by " + entry.actor;
}

namespace {

// Nothing where that makes no sense: better none than half of them.
std::optional<std::vector<PolicyOverride>> read_overrides(const std::string& text,
                                                          const Moment& now) {
    std::istringstream lines(text);
    std::string line;
    const auto then = std::getline(lines, line) ? parse_head(line) : std::nullopt;
    if (!then)
        return std::nullopt;
    std::vector<PolicyOverride> overrides;
    while (std::getline(lines, line) && line != kEnd) {
        const bool by_fleet = line.starts_with(kFleet);
        if (!by_fleet && !line.starts_with(kHost))
            return std::nullopt;
        auto entry =
            parse_override(std::string_view(line).substr((by_fleet ? kFleet : kHost).size()));
        if (!entry)
            return std::nullopt;
        entry->by_fleet = by_fleet;
        entry->until_ms = in_this_boot(entry->until_ms, *then, now);
        overrides.push_back(*std::move(entry));
    }
    return line == kEnd ? std::optional(std::move(overrides)) : std::nullopt;
}

}  // namespace

Result<std::vector<PolicyOverride>> OverrideFile::load(const Moment& now) const {
    const auto text = read_file(path_);
    if (!text && text.error().code == ErrorCode::not_found)
        return std::vector<PolicyOverride>();
    if (!text)
        return set_aside(path_, text.error());
    auto overrides = read_overrides(*text, now);
    if (!overrides)
        return set_aside(path_, failed(path_ + ": it is torn, or of another version"));
    return *std::move(overrides);
}

bool OverrideFile::exists() const {
    return ::access(path_.c_str(), F_OK) == 0;
}

Status OverrideFile::save(const std::vector<PolicyOverride>& overrides, const Moment& now) const {
    std::string text = std::string(kMagic) + '\t' + now.boot + '\t' + std::to_string(now.boot_ms) +
                       '\t' + std::to_string(now.wall_ms) + '\n';
    for (const PolicyOverride& entry : overrides)
        text += std::string(entry.by_fleet ? kFleet : kHost) + format_override(entry) + '\n';
    return replace_file(path_, text + std::string(kEnd) + '\n');
}

}  // namespace sluice
