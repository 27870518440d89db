#include "fleet/policy_in_redis.h"

#include <charconv>
#include <string_view>
#include <utility>

namespace sluice {

namespace {

Error no_time() {
    return failed("TIME: Redis's answer makes no sense");
}

Result<uint64_t> parse_number(const redis::Reply& reply) {
    const auto text = reply.as_text();
    uint64_t number = 0;
    if (!text ||
        std::from_chars(text->data(), text->data() + text->size(), number).ec != std::errc{})
        return no_time();
    return number;
}

// The answer to TIME: seconds and microseconds.
Result<uint64_t> parse_time_ms(const redis::Reply& reply) {
    const auto parts = reply.as_array();
    if (!parts)
        return parts.error();
    if (parts->size() != 2)
        return no_time();
    const auto seconds = parse_number((*parts)[0]), micros = parse_number((*parts)[1]);
    if (!seconds || !micros)
        return no_time();
    return *seconds * 1000 + *micros / 1000;
}

}  // namespace

Result<PolicyState> read_policy_state(Redis& redis, const PolicyKeys& keys) {
    const auto replies = redis.run(std::vector<redis::Command>{{"HGETALL", keys.base}, {"TIME"}});
    if (!replies)
        return replies.error();
    auto pointers = find_policy_pointers((*replies)[0]);
    if (!pointers)
        return pointers.error();
    auto overrides = parse_policy_overrides((*replies)[0]);
    if (!overrides)
        return overrides.error();
    const auto now_ms = parse_time_ms((*replies)[1]);
    if (!now_ms)
        return now_ms.error();
    (void)drop_ended(*overrides, *now_ms);
    return PolicyState{*std::move(pointers), *std::move(overrides), *now_ms};
}

Result<StoredVersion> read_policy_version(Redis& redis, const PolicyKeys& keys, uint64_t version) {
    const auto replies = redis.run(std::vector<redis::Command>{
        policy_version_command(keys, version), {"GET", keys.text(version)}});
    if (!replies)
        return replies.error();
    auto about = parse_policy_version(version, (*replies)[0]);
    if (!about)
        return about.error();
    auto text = parse_policy_text(*about, (*replies)[1]);
    if (!text)
        return text.error();
    return StoredVersion{*std::move(about), *std::move(text)};
}

}  // namespace sluice
