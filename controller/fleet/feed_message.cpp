#include "fleet/feed_message.h"

#include <openssl/sha.h>

#include <algorithm>
#include <charconv>

#include "accept.lua.h"
#include "ban.lua.h"
#include "base/text.h"
#include "policy/rule_id.h"
#include "switch.lua.h"
#include "unban.lua.h"

namespace sluice {

namespace {

using std::chrono::nanoseconds;

constexpr unsigned kMappedBits = 96;  // in front of an IPv4 address in its IPv6 form
constexpr std::string_view kAllSources = "*";
// Of the fleet's audit log: weeks of what operators do.
constexpr uint64_t kAuditLength = 100'000;

Error makes_no_sense(std::string_view what, std::string_view text) {
    return failed("the fleet's feed: " + std::string(what) + " makes no sense: " + in_quotes(text),
                  "did somebody write to sluice:* in Redis by hand?");
}

std::optional<uint64_t> number_of(std::string_view text) {
    uint64_t number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return number;
}

// Cut at tabs; the last field has whatever is left.
template <size_t N>
std::array<std::string_view, N> fields_of(std::string_view text) {
    std::array<std::string_view, N> fields;
    for (size_t i = 0; i < N; ++i) {
        const size_t end = i + 1 == N ? text.size() : std::min(text.find('\t'), text.size());
        fields[i] = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return fields;
}

std::array<unsigned char, SHA_DIGEST_LENGTH> sha1(std::string_view text) {
    std::array<unsigned char, SHA_DIGEST_LENGTH> hash;
    ::SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data());
    return hash;
}

std::string hex(const std::array<uint8_t, 16>& bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (const uint8_t byte : bytes) {
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text;
}

unsigned bits_in_front(const Prefix& prefix) {
    return prefix.family() == Family::ipv4 ? kMappedBits : 0;
}

// In the order of addresses, wider ones first.
std::string place_of(const Prefix& prefix) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const unsigned length = prefix.length() + bits_in_front(prefix);
    return hex(prefix.address().bytes()) + kDigits[length >> 4] + kDigits[length & 15];
}

std::string last_inside(const Prefix& prefix) {
    auto bytes = prefix.address().bytes();
    for (unsigned bit = prefix.length() + bits_in_front(prefix); bit < 8 * bytes.size(); ++bit)
        bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] | 0x80 >> bit % 8);
    return hex(bytes);
}

std::string_view kind_word(RuleKind kind) {
    return kind == RuleKind::allow ? "allow" : "ban";
}

// At least one, since 0 is for good.
uint64_t milliseconds_of(const std::optional<nanoseconds>& span) {
    if (!span)
        return 0;
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(*span).count();
    return static_cast<uint64_t>(std::max<int64_t>(ms, 1));
}

// One line without tabs, as records are made of tabs.
std::string one_line(std::string_view text) {
    std::string line = printable(text);
    std::replace(line.begin(), line.end(), '|', '/');
    return line;
}

using Fields = std::span<const redis::Reply>;

std::string_view value_of(Fields fields, std::string_view name) {
    for (size_t i = 0; i + 1 < fields.size(); i += 2)
        if (const auto found = fields[i].as_text(); found && *found == name)
            if (const auto value = fields[i + 1].as_text())
                return *value;
    return {};
}

Result<FeedEntry> parse_removal(FeedEntry entry, Fields fields) {
    const auto prefix = Prefix::parse(value_of(fields, "prefix"));
    const auto grace = number_of(value_of(fields, "grace"));
    if (!prefix || !grace)
        return makes_no_sense("an unban", value_of(fields, "prefix"));
    FeedRemoval removal{.kind = value_of(fields, "kind") == kind_word(RuleKind::allow)
                                    ? RuleKind::allow
                                    : RuleKind::ban,
                        .prefix = *prefix,
                        .grace_until_ms = *grace,
                        .actor = std::string(value_of(fields, "actor"))};
    if (const auto source = value_of(fields, "source"); source != kAllSources)
        removal.source = std::string(source);
    entry.change = std::move(removal);
    return entry;
}

Result<FeedEntry> parse_entry(const redis::Reply& reply) {
    const auto pair = reply.as_array();
    if (!pair || pair->size() != 2)
        return makes_no_sense("an entry", "");
    const auto id = (*pair)[0].as_text();
    const auto fields = (*pair)[1].as_array();
    if (!id || !fields)
        return makes_no_sense("an entry", id ? *id : "");
    FeedEntry entry{std::string(*id), number_of(value_of(*fields, "rev")).value_or(0), {}};
    const std::string_view op = value_of(*fields, "op");
    if (op == "put") {
        auto record = parse_feed_record(value_of(*fields, "member"), value_of(*fields, "record"));
        if (!record)
            return record.error();
        entry.change = *std::move(record);
    } else if (op == "take") {
        return parse_removal(std::move(entry), *fields);
    } else if (op == "switch" || op == "clear") {
        FeedSwitched switched{std::string(value_of(*fields, "target")), std::nullopt};
        if (op == "switch") {
            auto to = parse_feed_switch(value_of(*fields, "value"));
            if (!to)
                return to.error();
            switched.to = *std::move(to);
        }
        entry.change = std::move(switched);
    } else if (op == "accept") {
        entry.change = FeedAcceptance{};
    }
    return entry;
}

// The first word of an answer, a number, a text.
struct Answer {
    std::string_view word;
    uint64_t number = 0;
    std::string_view text;
};

Result<Answer> parse_answer(const redis::Reply& reply) {
    const auto parts = reply.as_array();
    if (!parts)
        return parts.error();
    Answer answer;
    const auto word =
        parts->empty() ? Result<std::string_view>(std::string_view()) : parts->front().as_text();
    if (!word)
        return word.error();
    answer.word = *word;
    if (parts->size() > 1) {
        if (const auto number = (*parts)[1].as_integer())
            answer.number = static_cast<uint64_t>(*number);
        else if (const auto text = (*parts)[1].as_text())
            answer.text = *text;
    }
    if (parts->size() > 2)
        if (const auto text = (*parts)[2].as_text())
            answer.text = *text;
    return answer;
}

}  // namespace

FeedKeys::FeedKeys(std::string_view fleet)
    : base("sluice:{" + std::string(fleet) + ":bans}"),
      digest(base + ":digest"),
      feed(base + ":feed"),
      gone(base + ":gone"),
      meta(base + ":meta"),
      order(base + ":order"),
      switches(base + ":switches"),
      turn(base + ":turn"),
      audit("sluice:{" + std::string(fleet) + ":audit}") {}

std::string FeedKeys::bucket(unsigned number) const {
    return base + ':' + std::to_string(number);
}

std::string feed_member(RuleKind kind, std::string_view source, const Prefix& prefix) {
    return (kind == RuleKind::allow ? "+" : "") + std::string(source) + '|' + prefix.to_string();
}

std::string feed_place(const Prefix& prefix, std::string_view member) {
    return place_of(prefix) + std::string(member);
}

unsigned feed_bucket(const Prefix& prefix) {
    const auto hash = sha1(prefix.to_string());
    return static_cast<unsigned>(hash[0] << 4 | hash[1] >> 4);
}

Result<FeedRecord> parse_feed_record(std::string_view member, std::string_view record) {
    FeedRecord parsed;
    parsed.member = std::string(member);
    std::string_view source = member.substr(0, member.find('|'));
    if (source.starts_with('+')) {
        parsed.kind = RuleKind::allow;
        source.remove_prefix(1);
    }
    const auto fields = fields_of<6>(record);
    const auto expires = number_of(fields[0]), rev = number_of(fields[1]),
               since = number_of(fields[3]);
    const auto prefix = source.size() + 1 < member.size()
                            ? Prefix::parse(member.substr(member.find('|') + 1))
                            : Result<Prefix>(makes_no_sense("a member", member));
    if (!prefix || !is_valid_name(source) || !expires || !rev || !since)
        return makes_no_sense("a record", member);
    parsed.prefix = *prefix;
    parsed.source = std::string(source);
    parsed.expires_ms = *expires;
    parsed.rev = *rev;
    parsed.forced = fields[2].find('f') != std::string_view::npos;
    parsed.exempt = fields[2].find('e') != std::string_view::npos;
    parsed.since_s = *since;
    parsed.actor = std::string(fields[4]);
    parsed.reason = std::string(fields[5]);
    const auto hash = sha1(std::string(member) + '=' + std::string(record));
    parsed.digest = static_cast<uint16_t>(hash[0] << 8 | hash[1]);
    return parsed;
}

Result<FeedSwitch> parse_feed_switch(std::string_view value) {
    const auto fields = fields_of<5>(value);
    const auto mode = parse_mode(fields[0]);
    const auto expires = number_of(fields[1]), rev = number_of(fields[2]);
    if (!mode || !expires || !rev)
        return makes_no_sense("a switch", value);
    return FeedSwitch{*mode, *expires, *rev, std::string(fields[3]), std::string(fields[4])};
}

Result<std::vector<FeedEntry>> parse_feed_entries(const redis::Reply& reply) {
    std::vector<FeedEntry> entries;
    if (reply.is_nil())
        return entries;
    const auto streams = reply.as_array();
    if (!streams)
        return streams.error();
    for (const redis::Reply& stream : *streams) {
        const auto pair = stream.as_array();
        const auto list = pair && pair->size() == 2
                              ? (*pair)[1].as_array()
                              : Result<Fields>(makes_no_sense("an answer", ""));
        if (!list)
            return list.error();
        for (const redis::Reply& one : *list) {
            auto entry = parse_entry(one);
            if (!entry)
                return entry.error();
            entries.push_back(*std::move(entry));
        }
    }
    return entries;
}

redis::Command feed_meta_command(const FeedKeys& keys) {
    return {"HMGET", keys.meta, "epoch", "rev", "accepted", "cleaned"};
}

Result<FeedMeta> parse_feed_meta(const redis::Reply& reply) {
    const auto values = reply.as_array();
    if (!values)
        return values.error();
    const auto text = [&](size_t i) {
        const auto found = i < values->size() ? (*values)[i].as_text() : Result(std::string_view());
        return found ? *found : std::string_view();
    };
    FeedMeta meta;
    meta.epoch = std::string(text(0));
    meta.rev = number_of(text(1)).value_or(0);
    meta.accepted_rev = number_of(text(2)).value_or(0);
    const auto cleaned = fields_of<2>(text(3));
    meta.cleaned_ms = number_of(cleaned[0]).value_or(0);
    meta.cleaned_place = std::string(cleaned[1]);
    return meta;
}

Result<FeedDigests> parse_feed_digests(const redis::Reply& reply) {
    FeedDigests digests{};
    if (reply.is_nil())
        return digests;
    const auto text = reply.as_text();
    if (!text)
        return text.error();
    if (text->size() != 2 * digests.size())
        return makes_no_sense("its string of digests", std::to_string(text->size()) + " bytes");
    for (size_t i = 0; i < digests.size(); ++i)
        digests[i] = static_cast<uint16_t>(static_cast<uint8_t>((*text)[2 * i]) << 8 |
                                           static_cast<uint8_t>((*text)[2 * i + 1]));
    return digests;
}

redis::Command feed_ban_command(const FeedKeys& keys, const FeedBan& ban) {
    redis::Command command = lua::kBan.call({keys.base});
    command.add(kind_word(ban.kind)).add(ban.prefix.to_string()).add(place_of(ban.prefix));
    command.add(ban.source).add(milliseconds_of(ban.ttl));
    command.add(std::string(ban.forced ? "f" : "") + (ban.exempt ? "e" : ""));
    command.add(one_line(ban.actor)).add(one_line(ban.reason));
    if (ban.token)
        command.add(*ban.token);
    return command;
}

redis::Command feed_audit_command(const FeedKeys& keys, const FeedAudit& entry) {
    redis::Command command{"XADD", keys.audit, "MAXLEN", "~"};
    command.add(kAuditLength).add("*").add("time").add(entry.time);
    command.add("actor").add(entry.actor).add("from").add(entry.from);
    command.add("action").add(entry.action).add("target").add(entry.target);
    command.add("before").add(entry.before).add("after").add(entry.after);
    command.add("reason").add(entry.reason);
    return command;
}

Result<FeedBanned> parse_feed_banned(const redis::Reply& reply) {
    const auto answer = parse_answer(reply);
    if (!answer)
        return answer.error();
    if (answer->word == "full")
        return failed("the fleet has as many bans as it can hold, a million",
                      "take some back: sluicectl unban PREFIX --fleet");
    return FeedBanned{answer->word == "added", answer->word == "kept", answer->word == "fenced",
                      answer->number};
}

redis::Command feed_unban_command(const FeedKeys& keys, const FeedUnban& unban) {
    redis::Command command = lua::kUnban.call({keys.base});
    command.add(kind_word(unban.kind)).add(unban.prefix.to_string()).add(place_of(unban.prefix));
    command.add(last_inside(unban.prefix));
    command.add(unban.source ? std::string_view(*unban.source) : kAllSources);
    command.add(milliseconds_of(unban.grace)).add(one_line(unban.actor));
    command.add(unban.insists ? 1 : 0);
    return command;
}

Result<FeedUnbanned> parse_feed_unbanned(const redis::Reply& reply) {
    const auto answer = parse_answer(reply);
    if (!answer)
        return answer.error();
    using Outcome = FeedUnbanned::Outcome;
    const Outcome outcome = answer->word == "done"    ? Outcome::done
                            : answer->word == "more"  ? Outcome::more
                            : answer->word == "cover" ? Outcome::covered
                                                      : Outcome::missing;
    return FeedUnbanned{outcome, answer->number, std::string(answer->text)};
}

redis::Command feed_switch_command(const FeedKeys& keys, std::string_view target,
                                   std::optional<Mode> mode, std::optional<nanoseconds> lasts,
                                   std::string_view actor, std::string_view reason) {
    redis::Command command = lua::kSwitch.call({keys.base});
    command.add(target).add(mode ? mode_name(*mode) : "clear").add(milliseconds_of(lasts));
    command.add(one_line(actor)).add(one_line(reason));
    return command;
}

Result<std::optional<Mode>> parse_feed_switched(const redis::Reply& reply) {
    const auto answer = parse_answer(reply);
    if (!answer)
        return answer.error();
    if (answer->word == "full")
        return failed("the fleet has as many switches as it can hold, 4,096",
                      "give some back: sluicectl switch clear RULE --fleet");
    const auto parts = reply.as_array();
    const auto before = parts && parts->size() > 1 ? (*parts)[1].as_text()
                                                   : Result<std::string_view>(std::string_view());
    if (!before || before->empty())
        return std::optional<Mode>();
    const auto mode = parse_mode(*before);
    return mode ? Result<std::optional<Mode>>(*mode) : mode.error();
}

redis::Command feed_accept_command(const FeedKeys& keys, std::span<const unsigned> damaged) {
    redis::Command command = lua::kAccept.call({keys.base});
    for (const unsigned bucket : damaged)
        command.add(bucket);
    return command;
}

}  // namespace sluice
