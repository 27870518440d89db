#include "fleet/policy_message.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <functional>

#include "base/text.h"
#include "override.lua.h"
#include "owe.lua.h"
#include "point.lua.h"
#include "push.lua.h"
#include "written.lua.h"

namespace sluice {

namespace {

using redis::Reply;

Error no_policy() {
    return failed("Redis's policy of the fleet makes no sense",
                  "do all hosts of the fleet run the same version of Sluice?");
}

uint64_t number_of(std::string_view text) {
    uint64_t number = 0;
    (void)std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

std::string_view text_of(const Reply& reply) {
    const auto text = reply.as_text();
    return text ? *text : std::string_view();
}

std::string sha1_of(std::string_view text) {
    std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
    ::SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
    std::string hex;
    for (const unsigned char byte : digest) {
        std::array<char, 3> digits{};
        (void)std::snprintf(digits.data(), digits.size(), "%02x", byte);
        hex += digits.data();
    }
    return hex;
}

std::string field_of(uint64_t version) {
    return 'v' + std::to_string(version);
}

// The fields of the hash that read_pointers() reads, in its order.
constexpr std::array<std::string_view, 12> kPointers = {
    "rev",    "last",         "current",      "since", "by",        "from",
    "canary", "canary_hosts", "canary_since", "stamp", "unwritten", "again"};

PolicyPointers read_pointers(const std::array<std::string_view, kPointers.size()>& values) {
    PolicyPointers pointers{.rev = number_of(values[0]),
                            .last = number_of(values[1]),
                            .current = number_of(values[2]),
                            .since_ms = number_of(values[3]),
                            .by = printable(values[4]),
                            .from = printable(values[5]),
                            .canary = number_of(values[6]),
                            .canary_hosts = printable(values[7]),
                            .canary_since_ms = number_of(values[8]),
                            .stamp_ms = number_of(values[9]),
                            .unwritten_ms = number_of(values[10]),
                            .again_ms = number_of(values[11])};
    // Of a state that an earlier version wrote.
    pointers.stamp_ms = std::max({pointers.stamp_ms, pointers.since_ms, pointers.canary_since_ms});
    return pointers;
}

// Pushed, by, from, digest, bytes, before, note.
std::optional<PolicyVersion> read_version(uint64_t number, std::string_view line) {
    constexpr size_t kFields = 7;
    std::array<std::string_view, kFields> fields;
    for (size_t i = 0; i < kFields; ++i) {
        const size_t tab = line.find('\t');
        if ((tab == std::string_view::npos) != (i + 1 == kFields))
            return std::nullopt;
        fields[i] = line.substr(0, tab);
        line.remove_prefix(std::min(line.size(), fields[i].size() + 1));
    }
    PolicyVersion version;
    version.version = number;
    version.pushed_ms = number_of(fields[0]);
    // People read these.
    version.by = printable(fields[1]);
    version.from = printable(fields[2]);
    version.digest = fields[3];
    version.bytes = number_of(fields[4]);
    version.before = number_of(fields[5]);
    version.note = printable(fields[6]);
    return version;
}

// The words of a script's answer, at least `least` of them.
Result<std::vector<std::string_view>> words_of(const Reply& reply, size_t least) {
    const auto parts = reply.as_array();
    if (!parts)
        return parts.error();
    std::vector<std::string_view> words;
    for (const Reply& part : *parts)
        words.push_back(text_of(part));
    if (words.size() < std::max<size_t>(least, 1))
        return no_policy();
    return words;
}

}  // namespace

PolicyKeys::PolicyKeys(std::string_view fleet)
    : base("sluice:{" + std::string(fleet) + ":policy}") {}

std::string PolicyKeys::text(uint64_t version) const {
    return base + ":v" + std::to_string(version);
}

redis::Command policy_pointers_command(const PolicyKeys& keys) {
    redis::Command command = {"HMGET", keys.base};
    for (const std::string_view field : kPointers)
        command.add(field);
    return command;
}

Result<PolicyPointers> parse_policy_pointers(const Reply& reply) {
    const auto fields = reply.as_array();
    if (!fields)
        return fields.error();
    if (fields->size() != kPointers.size())
        return no_policy();
    std::array<std::string_view, kPointers.size()> values;
    std::ranges::transform(*fields, values.begin(), text_of);
    return read_pointers(values);
}

Result<PolicyPointers> find_policy_pointers(const Reply& all) {
    const auto fields = all.as_array();
    if (!fields)
        return fields.error();
    std::array<std::string_view, kPointers.size()> values;
    for (size_t i = 0; i + 1 < fields->size(); i += 2) {
        const auto* const found = std::ranges::find(kPointers, text_of((*fields)[i]));
        if (found != kPointers.end())
            values[static_cast<size_t>(found - kPointers.begin())] = text_of((*fields)[i + 1]);
    }
    return read_pointers(values);
}

redis::Command policy_version_command(const PolicyKeys& keys, uint64_t version) {
    return {"HGET", keys.base, field_of(version)};
}

Result<PolicyVersion> parse_policy_version(uint64_t version, const Reply& reply) {
    if (reply.is_nil())
        return make_error(ErrorCode::not_found,
                          "the fleet has no policy version " + std::to_string(version),
                          "those it has: sluicectl policy history");
    const auto line = reply.as_text();
    if (!line)
        return line.error();
    auto known = read_version(version, *line);
    if (!known)
        return no_policy();
    return *std::move(known);
}

Result<std::vector<PolicyVersion>> parse_policy_history(const Reply& reply) {
    const auto all = reply.as_array();
    if (!all)
        return all.error();
    std::vector<PolicyVersion> versions;
    for (size_t i = 0; i + 1 < all->size(); i += 2) {
        const std::string_view field = text_of((*all)[i]);
        const uint64_t number = field.starts_with('v') ? number_of(field.substr(1)) : 0;
        if (number == 0)
            continue;
        auto version = read_version(number, text_of((*all)[i + 1]));
        if (!version)
            return no_policy();
        versions.push_back(*std::move(version));
    }
    std::ranges::sort(versions, std::ranges::greater(), &PolicyVersion::version);
    return versions;
}

Result<std::string> parse_policy_text(const PolicyVersion& version, const Reply& reply) {
    const std::string name = "policy version " + std::to_string(version.version);
    if (reply.is_nil())
        return make_error(ErrorCode::not_found, name + ": Redis has lost its text",
                          "push it again; does this Redis evict keys?");
    const auto text = reply.as_text();
    if (!text)
        return text.error();
    if (sha1_of(*text) != version.digest)
        return failed(name + ": its text in Redis is not the one that was pushed",
                      "push it again; who else writes to its key?");
    return std::string(*text);
}

redis::Command policy_push_command(const PolicyKeys& keys, const PolicyPush& push) {
    redis::Command command = lua::kPush.call({keys.base});
    return command.add(push.text)
        .add(push.base ? std::to_string(*push.base) : "")
        .add(push.above)
        .add(push.after_ms)
        .add(push.canaries)
        .add(push.actor)
        .add(push.from)
        .add(push.note);
}

Result<PolicyPushed> parse_policy_pushed(const Reply& reply) {
    const auto words = words_of(reply, 3);
    if (!words)
        return words.error();
    PolicyPushed pushed;
    if ((*words)[0] == "moved") {
        pushed.last = number_of((*words)[1]);
        pushed.theirs = read_version(pushed.last, (*words)[2]);
        return pushed;
    }
    if ((*words)[0] != "done" || words->size() < 4)
        return no_policy();
    pushed.version = number_of((*words)[1]);
    pushed.since_ms = number_of((*words)[2]);
    pushed.before = number_of((*words)[3]);
    return pushed;
}

redis::Command policy_point_command(const PolicyKeys& keys, const PolicyPoint& point) {
    redis::Command command = lua::kPoint.call({keys.base});
    return command.add(point.version).add(point.rev).add(point.actor).add(point.from);
}

Result<PolicyPointed> parse_policy_pointed(const Reply& reply) {
    const auto words = words_of(reply, 1);
    if (!words)
        return words.error();
    PolicyPointed pointed;
    if ((*words)[0] == "moved")
        pointed.outcome = PolicyPointed::Outcome::moved;
    else if ((*words)[0] == "missing")
        pointed.outcome = PolicyPointed::Outcome::missing;
    else if ((*words)[0] != "done" || words->size() < 3)
        return no_policy();
    if (pointed.outcome == PolicyPointed::Outcome::done) {
        pointed.since_ms = number_of((*words)[1]);
        pointed.before = number_of((*words)[2]);
    }
    return pointed;
}

redis::Command policy_override_command(const PolicyKeys& keys, const PolicyOverride& entry,
                                       std::chrono::milliseconds lasts) {
    redis::Command command = lua::kOverride.call({keys.base});
    command.add(entry.change.service).add(lasts.count()).add(entry.actor).add(entry.reason);
    for (const auto& [key, value] : entry.change.values)
        command.add(key + '=' + value);
    return command;
}

Result<PolicyOverridden> parse_policy_overridden(const Reply& reply) {
    const auto words = words_of(reply, 1);
    if (!words)
        return words.error();
    if ((*words)[0] == "full")
        return failed("the fleet has as many overrides as it can have",
                      "end one: sluicectl policy override SERVICE --clear --fleet");
    if ((*words)[0] == "missing")
        return make_error(ErrorCode::not_found, "there is no such override in the fleet",
                          "those there are: sluicectl status");
    if ((*words)[0] != "done" || words->size() < 3)
        return no_policy();
    return PolicyOverridden{number_of((*words)[1]), number_of((*words)[2])};
}

Result<std::vector<PolicyOverride>> parse_policy_overrides(const Reply& reply) {
    const auto all = reply.as_array();
    if (!all)
        return all.error();
    std::vector<PolicyOverride> overrides;
    for (size_t i = 0; i + 1 < all->size(); i += 2) {
        if (!text_of((*all)[i]).starts_with("o:"))
            continue;
        auto entry = parse_override(text_of((*all)[i + 1]));
        if (!entry)
            continue;
        entry->by_fleet = true;
        overrides.push_back(*std::move(entry));
    }
    std::ranges::sort(overrides, {}, [](const PolicyOverride& entry) -> const std::string& {
        return entry.change.service;
    });
    return overrides;
}

redis::Command policy_written_command(const PolicyKeys& keys, uint64_t stamp_ms,
                                      uint64_t again_ms) {
    redis::Command command = lua::kWritten.call({keys.base});
    return command.add(stamp_ms).add(again_ms);
}

redis::Command policy_owe_command(const PolicyKeys& keys, uint64_t found_ms) {
    redis::Command command = lua::kOwe.call({keys.base});
    return command.add(found_ms);
}

Result<PolicyOwed> parse_policy_owed(const Reply& reply) {
    const auto words = words_of(reply, 1);
    if (!words)
        return words.error();
    if ((*words)[0] == "owed")
        return PolicyOwed::owed;
    if ((*words)[0] == "known")
        return PolicyOwed::known;
    if ((*words)[0] == "missing")
        return PolicyOwed::missing;
    return no_policy();
}

}  // namespace sluice
