#include "feeds/block_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <random>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "feeds/http.h"
#include "feeds/spare.h"
#include "gate/list_file.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds, std::chrono::seconds;

// Few enough to be typed by hand: such a change is nobody's accident.
constexpr size_t kSmallChange = 16;
// For a whole list over a slow line.
constexpr seconds kDownload{300};
// The first try after a failure; then after twice as long, up to the interval.
constexpr seconds kFirstRetry{30};
constexpr int kMostDoublings = 16;
// Of the interval, so that a fleet's hosts do not call all at once.
constexpr double kJitter = 0.1;
constexpr seconds kSteady{60};  // shorter intervals have none
// A file that was written so shortly ago may not be whole yet.
constexpr seconds kSettled{1};
// In this part of its time the list in the gate need not be written anew to last longer.
constexpr int kRenewals = 4;

ListFormat format_of(FeedType type) {
    switch (type) {
        case FeedType::plain:
            return ListFormat::plain;
        case FeedType::spamhaus:
            return ListFormat::spamhaus;
        case FeedType::firehol:
            return ListFormat::firehol;
        case FeedType::automatic:
        case FeedType::crowdsec:
            break;
    }
    return ListFormat::automatic;
}

nanoseconds with_jitter(nanoseconds interval) {
    if (interval < kSteady)
        return interval;
    thread_local std::minstd_rand random(std::random_device{}());
    const double part = std::uniform_real_distribution(1 - kJitter, 1.0)(random);
    return nanoseconds(static_cast<int64_t>(static_cast<double>(interval.count()) * part));
}

// With comments, however a list is written; a server that sends more has something else in mind.
size_t most_bytes(const BanFeed& feed) {
    constexpr size_t kHead = size_t{1} << 20, kLine = 100;
    return std::min(kLongestList, kHead + kLine * feed.max_entries);
}

std::string why_left_out(const ListFile& list) {
    if (list.refused_lines.empty())
        return {};
    const RefusedLine& first = list.refused_lines.front();
    return "line " + std::to_string(first.line) + ": " + first.why;
}

}  // namespace

bool is_usual_change(const BanFeed& feed, size_t before, size_t now) {
    if (before == 0 || std::max(before, now) - std::min(before, now) <= kSmallChange)
        return true;
    const auto was = static_cast<double>(before);
    const auto is = static_cast<double>(now);
    return is <= was * feed.most_growth && is * feed.most_shrink >= was;
}

BlockList::BlockList(const BanFeed& feed, const std::string& pin_dir)
    : FeedWorker(feed, pin_dir, "listed by " + (feed.file.empty() ? feed.url : feed.file)) {}

void BlockList::step(Time now, const std::stop_token& stop) {
    if (now >= next_look_)
        look(now, stop);
    if (!held_.empty() && gate().version() != held_at_version_)
        looked_ = weigh(now);
    const bool is_due = !is_put_ || (!list_.empty() && gate().gate() != put_gate_) ||
                        (confirmed_ > put_at_ && now - put_at_ >= feed().ttl / kRenewals);
    if (is_due && !list_.empty() && !stop.stop_requested())
        put_ = put(now, stop);
    if (!stop.stop_requested())
        tell(looked_ ? put_ : looked_);
}

void BlockList::look(Time now, const std::stop_token& stop) {
    is_unsettled_ = false;
    auto text = feed().file.empty() ? download(stop) : read_file();
    if (stop.stop_requested())
        return;
    if (!text)
        looked_ = text.error();
    else if (*text)
        looked_ = consider(now, *std::move(*text));
    else if (held_.empty() && !is_unsettled_)
        looked_ = confirm(now);
    const bool is_lost = !looked_ && held_.empty() && feed().file.empty();
    failures_ = is_lost ? std::min(failures_ + 1, kMostDoublings) : 0;
    nanoseconds pause = with_jitter(feed().interval);
    if (is_unsettled_)
        pause = kSettled;
    else if (is_lost)
        pause = std::min<nanoseconds>(pause, kFirstRetry * (1 << (failures_ - 1)));
    next_look_ = now + pause;
}

Status BlockList::confirm(Time now) {
    confirmed_ = now;
    note([now](BanFeedStanding& standing) { standing.good_at = now; });
    return {};
}

Result<std::optional<BlockList::Text>> BlockList::read_file() {
    const std::string& path = feed().file;
    const auto look_at = [&path]() -> Result<Seen> {
        struct stat found {};
        if (::stat(path.c_str(), &found) != 0)
            return from_errno(errno, path);
        return Seen{found.st_dev, found.st_ino, static_cast<uint64_t>(found.st_size),
                    found.st_mtim.tv_sec * 1'000'000'000 + found.st_mtim.tv_nsec};
    };
    const auto before = look_at();
    if (!before)
        return before.error();
    if (seen_ == *before)
        return std::optional<Text>();
    const int64_t age_s =
        static_cast<int64_t>(::time(nullptr)) - before->modified_ns / 1'000'000'000;
    is_unsettled_ = age_s >= 0 && age_s <= kSettled.count();
    if (is_unsettled_)
        return std::optional<Text>();
    auto text =
        read_input_file(path, {.most_bytes = most_bytes(feed()), .mend = "split it in two feeds"});
    if (!text)
        return text.error();
    const auto after = look_at();
    is_unsettled_ = !after || !(*after == *before);
    if (is_unsettled_)
        return std::optional<Text>();
    return std::optional(Text{.text = *std::move(text), .seen = *before});
}

Result<std::optional<BlockList::Text>> BlockList::download(const std::stop_token& stop) {
    HttpRequest request{.url = feed().url,
                        .ca_file = feed().ca_file,
                        .follows_redirects = true,
                        .most_bytes = most_bytes(feed()),
                        .deadline = kDownload};
    if (!tags_.etag.empty())
        request.headers.push_back("If-None-Match: " + tags_.etag);
    if (!tags_.last_modified.empty())
        request.headers.push_back("If-Modified-Since: " + tags_.last_modified);
    auto answer = http_get(request, stop);
    if (!answer)
        return answer.error().with_context(feed().url);
    constexpr int kOk = 200, kNotModified = 304;
    if (answer->status == kNotModified && !request.headers.empty())
        return std::optional<Text>();
    if (answer->status != kOk)
        return failed(feed().url + " answers " + std::to_string(answer->status));
    return std::optional(Text{.text = std::move(answer->body),
                              .tags = {std::move(answer->etag), std::move(answer->last_modified)}});
}

// What was read is a list that makes sense; whether it is taken is weighed.
Status BlockList::consider(Time now, Text text) {
    const std::string& from = feed().file.empty() ? feed().url : feed().file;
    const auto list = parse_list(text.text, format_of(feed().type));
    if (!list)
        return list.error().with_context(from);
    const auto spared = spared_networks();
    if (!spared)
        return spared.error();
    std::vector<Prefix> prefixes = without(list->prefixes, *spared);
    if (prefixes.empty())
        return failed(from + ": all that it lists is private, reserved or this host's own");
    if (prefixes.size() > feed().max_entries)
        return failed(
            from + " has " + std::to_string(prefixes.size()) +
                " entries; at most so many are taken: " + std::to_string(feed().max_entries),
            "see whether it is the right list; then raise max_entries");
    held_ = std::move(prefixes);
    const Status taken = weigh(now);
    // That list need not be sent again, whether it waits or not.
    seen_ = text.seen;
    tags_ = std::move(text.tags);
    note([&](BanFeedStanding& standing) {
        standing.left_out = list->refused;
        standing.left_out_first = why_left_out(*list);
    });
    return taken;
}

// Takes the list that waits, where it is no great change, or an operator has cleared the old one.
Status BlockList::weigh(Time now) {
    held_at_version_ = gate().version();
    const auto before = length_before(now);
    // Without a gate there is nothing to compare it with, and nothing to put it in.
    if (!before)
        return before.error();
    if (!is_usual_change(feed(), *before, held_.size())) {
        const size_t length = held_.size();
        note([length](BanFeedStanding& standing) { standing.held = length; });
        return failed("the list went from " + std::to_string(*before) + " to " +
                          std::to_string(length) + " entries: the old one holds",
                      "look at it; to take it: sluicectl bans flush --source " + feed().name);
    }
    list_ = std::exchange(held_, {});
    is_put_ = false;
    note([](BanFeedStanding& standing) { standing.held.reset(); });
    return confirm(now);
}

// Of a list that ran out by itself what it had; an operator who flushes it means that.
Result<size_t> BlockList::length_before(Time now) const {
    const auto in_gate = gate().count();
    if (!in_gate || *in_gate != 0 || list_.empty() || !is_put_)
        return in_gate;
    return now < confirmed_ + feed().ttl ? 0 : list_.size();
}

Status BlockList::put(Time now, const std::stop_token& stop) {
    // Of a server that is gone by now.
    const nanoseconds left = feed().ttl - (now - confirmed_);
    if (left <= 0s)
        return {};
    std::vector<RuleEntry> entries;
    entries.reserve(list_.size());
    for (const Prefix& prefix : list_)
        entries.push_back({.prefix = prefix, .ttl = left});
    const auto pin = gate().gate();
    const auto outcome = gate().replace(entries, stop);
    if (!outcome)
        return outcome.error();
    if (!is_put_)
        log(LogLevel::info,
            "feed " + feed().name + ": in force: " +
                std::to_string(outcome->added + outcome->changed + outcome->unchanged) +
                " entries; new: " + std::to_string(outcome->added) +
                ", gone: " + std::to_string(outcome->removed));
    is_put_ = true;
    put_at_ = now;
    put_gate_ = pin;
    note([&](BanFeedStanding& standing) {
        standing.spared =
            outcome->allowed.count + outcome->protected_.count + outcome->too_wide.count;
        standing.entries = outcome->added + outcome->changed + outcome->unchanged;
    });
    return {};
}

}  // namespace sluice
