#include "feeds/crowdsec.h"

#include <algorithm>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "feeds/http.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;

// Half a million decisions.
constexpr size_t kLongestAnswer = size_t{128} << 20;
// All decisions of a busy server take it seconds.
constexpr std::chrono::seconds kDeadline{60};
// All of them again now and then, whatever got lost.
constexpr std::chrono::hours kResync{1};
// Beyond, to write the list anew is quicker than one change after the other.
constexpr size_t kOneByOne = 256;
// Of the interval, after failures: the answer to each is all there is.
constexpr int kMostDoublings = 3;
constexpr size_t kLongestKey = 4'096;

Result<std::string> read_key(const std::string& path) {
    auto key =
        read_input_file(path, {.most_bytes = kLongestKey,
                               .mend = "write the API key alone into it",
                               .where_from = "to get one: cscli bouncers add sluice -o raw"});
    if (!key)
        return key.error().with_context("key_file");
    while (key->ends_with('\n') || key->ends_with('\r') || key->ends_with(' '))
        key->pop_back();
    const bool is_word = std::ranges::all_of(*key, [](char c) { return c > ' ' && c < 127; });
    if (key->empty() || !is_word)
        return failed("key_file " + path + ": is no API key",
                      "write the API key alone into it: cscli bouncers add sluice -o raw");
    return key;
}

Error explain(int status, const std::string& url, const BanFeed& feed) {
    constexpr int kUnauthorized = 401, kForbidden = 403, kNotFound = 404;
    const std::string what = url + " answers " + std::to_string(status);
    if (status == kUnauthorized || status == kForbidden)
        return failed(what + ": it does not know the key in " + feed.key_file,
                      "give this host one of its own: cscli bouncers add NAME -o raw");
    if (status == kNotFound)
        return failed(what, "url is to be that of the local API, such as http://127.0.0.1:8080");
    return failed(what);
}

RuleEntry entry_of(const DecisionBook::Ban& ban, FeedWorker::Time now) {
    return {.prefix = ban.prefix,
            .ttl = std::min<std::chrono::nanoseconds>(ban.until - now, kLongestTtl)};
}

}  // namespace

Crowdsec::Crowdsec(const BanFeed& feed, const std::string& pin_dir)
    : FeedWorker(feed, pin_dir, "decided by CrowdSec at " + feed.url) {}

void Crowdsec::step(Time now, const std::stop_token& stop) {
    if (now >= next_look_) {
        looked_ = look(now, stop);
        failures_ = looked_ ? 0 : std::min(failures_ + 1, kMostDoublings);
        next_look_ = now + feed().interval * (1 << failures_);
    }
    const bool is_known = whole_at_.has_value() || put_gate_;
    const bool is_other_gate = put_gate_ && gate().gate() != put_gate_;
    if (is_known && (!is_put_ || is_other_gate) && !stop.stop_requested())
        put_ = replace(std::chrono::steady_clock::now(), stop);
    if (!stop.stop_requested())
        tell(looked_ ? put_ : looked_);
}

// The server remembers what it has told. So whatever goes wrong, all is asked for again.
Status Crowdsec::look(Time now, const std::stop_token& stop) {
    const bool all = !whole_at_ || now - *whole_at_ >= kResync;
    const auto before = std::exchange(whole_at_, std::nullopt);
    auto stream = ask(all, stop);
    if (!stream)
        return stream.error();
    if (stream->added.size() + (all ? 0 : book_.size()) > feed().max_entries)
        return failed(feed().url + ": has more than " + std::to_string(feed().max_entries) +
                          " decisions: what was in force before holds",
                      "see what they are: cscli decisions list; or raise max_entries");
    if (all)
        book_ = {};
    const auto changed = book_.apply(*stream, now);
    book_.drop_expired(now);
    whole_at_ = all ? now : before;
    note([&](BanFeedStanding& standing) {
        standing.good_at = now;
        if (all)
            standing.left_out = 0;
        standing.left_out += stream->skipped;
        if (stream->skipped != 0)
            standing.left_out_first = stream->skipped_first;
    });
    // One that ends sooner must go before it comes again; as a whole there is no time between.
    if (all || changed.shortens || changed.put.size() + changed.gone.size() > kOneByOne)
        is_put_ = false;
    else if (is_put_)
        put_ = change(changed, std::chrono::steady_clock::now(), stop);
    return {};
}

Result<DecisionStream> Crowdsec::ask(bool all, const std::stop_token& stop) const {
    const auto key = read_key(feed().key_file);
    if (!key)
        return key.error();
    std::string url = feed().url;
    while (url.ends_with('/'))
        url.pop_back();
    // Each decision, not the longest of each address alone: that the longest is deleted would not
    // be told where another one stands.
    url += std::string("/v1/decisions/stream?startup=") + (all ? "true" : "false") + "&dedup=false";
    const auto answer = http_get({.url = url,
                                  .headers = {"X-Api-Key: " + *key, "Accept: application/json"},
                                  .ca_file = feed().ca_file,
                                  .most_bytes = kLongestAnswer,
                                  .deadline = kDeadline},
                                 stop);
    if (!answer)
        return answer.error().with_context(feed().url);
    constexpr int kOk = 200;
    if (answer->status != kOk)
        return explain(answer->status, feed().url, feed());
    auto stream = parse_decisions(answer->body);
    if (!stream)
        return stream.error().with_context(feed().url);
    return stream;
}

Status Crowdsec::replace(Time now, const std::stop_token& stop) {
    book_.drop_expired(now);
    std::vector<RuleEntry> entries;
    for (const DecisionBook::Ban& ban : book_.bans())
        entries.push_back(entry_of(ban, now));
    const auto pin = gate().gate();
    const auto outcome = gate().replace(entries, stop);
    if (!outcome)
        return outcome.error();
    if (!put_gate_)
        log(LogLevel::info,
            "feed " + feed().name + ": in force: " +
                std::to_string(outcome->added + outcome->changed + outcome->unchanged) + " bans");
    is_put_ = true;
    put_gate_ = pin;
    note_outcome(*outcome, true);
    return {};
}

Status Crowdsec::change(const DecisionBook::Change& change, Time now, const std::stop_token& stop) {
    if (change.put.empty() && change.gone.empty())
        return put_;
    std::vector<RuleEntry> entries;
    for (const DecisionBook::Ban& ban : change.put)
        entries.push_back(entry_of(ban, now));
    const auto outcome = gate().change(change.gone, entries, stop);
    if (outcome)
        note_outcome(*outcome, false);
    else
        is_put_ = false;
    return outcome ? Status() : outcome.error();
}

void Crowdsec::note_outcome(const ImportOutcome& outcome, bool whole) {
    const auto count = gate().count();
    note([&](BanFeedStanding& standing) {
        standing.spared = (whole ? 0 : standing.spared) + outcome.allowed.count +
                          outcome.protected_.count + outcome.too_wide.count;
        if (count)
            standing.entries = *count;
    });
}

}  // namespace sluice
