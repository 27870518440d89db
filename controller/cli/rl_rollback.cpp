#include "cli/rl_rollback.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/fleet_writer.h"
#include "fleet/rl_policy.h"
#include "fleet/rl_rollback.h"
#include "gate/policy_store.h"
#include "policy/rl_reader.h"

namespace sluice::cli {

namespace {

using redis::Command, redis::Reply;

// The hash as it is, with what this version does not know.
struct Stored {
    std::vector<std::string> words;  // fields and values in turns
    RlNumbers numbers;
};

Result<Stored> read(const Reply& reply, const std::string& key) {
    const auto words = reply.as_array();
    if (!words)
        return words.error().with_context(key);
    Stored stored;
    for (const Reply& word : *words) {
        const auto text = word.as_text();
        stored.words.emplace_back(text ? *text : std::string_view());
    }
    RlTexts texts;
    for (size_t i = 0; i + 1 < stored.words.size(); i += 2) {
        const auto field = std::ranges::find(kRlFields, stored.words[i], &RlField::name);
        if (field != kRlFields.end())
            texts[static_cast<size_t>(field - kRlFields.begin())] = stored.words[i + 1];
    }
    const auto numbers = parse_rl_numbers(texts);
    if (!numbers)
        return numbers.error().with_context(key);
    stored.numbers = *numbers;
    return stored;
}

}  // namespace

Result<Answer> rollback_rl(const std::string& route, const std::string& stamp,
                           const Session& session) {
    if (!is_valid_route(route))
        return make_error(ErrorCode::usage, "--rl: " + in_quotes(route) + " is no route");
    if (!is_rl_stamp(stamp))
        return make_error(ErrorCode::usage, "--rl: " + in_quotes(stamp) + " is no hour",
                          "use YYYYMMDDHH, such as 2026120118");
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    const auto policy = current_policy(**gate);
    if (!policy)
        return policy.error();
    if (!policy->policy.rl)
        return failed("this host follows no other limiter: its policy has no [rl]",
                      "add [rl] to its configuration");
    auto redis = FleetWriter::open(**gate);
    if (!redis)
        return redis.error();
    const std::string key = policy->policy.rl->prefix + rl_policy_key(route);
    const std::string dated = policy->policy.rl->prefix + rl_dated_key(route, stamp);
    const auto replies =
        redis->redis().run(std::array{Command{"HGETALL", dated}, Command{"HGETALL", key}});
    if (!replies)
        return replies.error().with_context("Redis");
    const auto wanted = read((*replies)[0], dated);
    if (!wanted)
        return wanted.error();
    if (wanted->words.empty())
        return make_error(ErrorCode::not_found, "Redis has no " + dated);
    // What makes no sense there is what it is to take the place of.
    const auto before = read((*replies)[1], key);
    Answer answer;
    const std::string before_text =
        before ? format_rl_numbers(before->numbers) : "what makes no sense";
    const AuditEntry entry{"policy rollback --rl", key, before_text,
                           format_rl_numbers(wanted->numbers), "as in " + dated};
    if (const Status recorded = redis->record(session, entry, answer.warnings); !recorded)
        return recorded.error();
    const auto done = redis->write(rl_rollback_command(key, wanted->words));
    if (!done) {
        Error told = done.error();
        if (told.code == ErrorCode::not_permitted)
            told.hint =
                "the user of [redis] may only read there; to let him write: docs/openresty.md";
        return told;
    }
    session.made();
    answer.changed = true;
    answer.data = {{"route", route},
                   {"stamp", stamp},
                   {"key", key},
                   {"before", before_text},
                   {"after", format_rl_numbers(wanted->numbers)}};
    return answer;
}

void show_rollback_rl(const Json& data, Screen& screen) {
    screen.line(data["key"].get<std::string>() + " is as it was at " +
                data["stamp"].get<std::string>() + ": " + data["after"].get<std::string>() +
                ", in place of " + data["before"].get<std::string>() + '.');
}

}  // namespace sluice::cli
