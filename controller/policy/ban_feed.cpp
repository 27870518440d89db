#include "policy/ban_feed.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/quantities.h"
#include "base/text.h"
#include "policy/rule_id.h"

namespace sluice {

namespace {

using std::chrono::nanoseconds, std::chrono::seconds, std::chrono::hours;

constexpr std::array kTypes = {FeedType::automatic, FeedType::plain, FeedType::spamhaus,
                               FeedType::firehol, FeedType::crowdsec};

constexpr seconds kFileInterval{10};
constexpr hours kUrlInterval{1};
constexpr seconds kCrowdsecInterval{10};  // as its own bouncers
constexpr seconds kShortestInterval{1};
constexpr hours kLongestInterval{7 * 24};

// Long enough for a night in which the server is gone.
constexpr hours kTtl{24};
constexpr hours kLongestTtl{90 * 24};
// A list must outlive a look that fails.
constexpr int kLooksInTtl = 2;

constexpr uint64_t kMaxEntries = 1'000'000;
constexpr uint64_t kMostEntries = 10'000'000;  // of any gate's tables
// Half a list looks like a download that was cut off; four times as much like another file.
constexpr double kMostGrowth = 4;
constexpr double kMostShrink = 2;
constexpr double kLeastChange = 1.01;
constexpr double kMostChange = 1'000'000;

constexpr size_t kMostFeeds = 16;  // each has a thread of its own

constexpr std::string_view kUrlExample = "\"https://www.spamhaus.org/drop/drop_v4.json\"";
constexpr std::string_view kFileExample = "\"/var/lib/sluice/drop_v4.json\"";
constexpr std::string_view kLapiExample = "\"http://127.0.0.1:8080\"";
constexpr std::string_view kKeyExample = "\"/etc/sluice/crowdsec.key\"";

Result<FeedType> parse_type(std::string_view text) {
    for (const FeedType type : kTypes)
        if (text == feed_type_name(type))
            return type;
    return failed(in_quotes(text) + " is unknown",
                  "use \"auto\", \"plain\", \"spamhaus\", \"firehol\" or \"crowdsec\"");
}

std::string read_path(const Field& field, std::string_view example) {
    std::string path = field.string(example).value_or("/");
    if (!path.starts_with('/') || path.find('\0') != std::string::npos)
        field.fail("is no absolute path", "use one such as " + std::string(example));
    return path;
}

// "http://[::1]:8080/x" has the host "[::1]"; empty where it is no such URL.
std::string_view host_in(std::string_view url) {
    for (const std::string_view scheme : {"https://", "http://"}) {
        if (!url.starts_with(scheme))
            continue;
        url.remove_prefix(scheme.size());
        const std::string_view host = url.substr(0, url.find_first_of("/?#"));
        const size_t bracket = host.starts_with('[') ? host.find(']') : std::string_view::npos;
        return bracket != std::string_view::npos ? host.substr(0, bracket + 1)
                                                 : host.substr(0, host.find(':'));
    }
    return {};
}

std::string read_url(const Field& field, std::string_view example,
                     std::vector<std::string>& warnings) {
    std::string url = field.string(example).value_or(std::string(kLapiExample));
    const std::string_view rest = std::string_view(url).substr(0, url.find_first_of("?#"));
    const bool is_text = std::ranges::all_of(url, [](char c) { return c > ' ' && c < 127; });
    const auto host = host_in(url);
    if (host.empty() || !is_text) {
        field.fail("is no URL of the web", "use one such as " + std::string(example));
    } else if (rest.find('@') != std::string_view::npos) {
        // It would be shown by status, and stand in the log.
        field.fail("holds a user or a password", "use a URL without them");
    } else if (url.starts_with("http://") && !host.starts_with("127.") && host != "localhost" &&
               host != "[::1]") {
        warnings.push_back(field.at().to_string() + ": " + field.name() +
                           ": is not encrypted: whoever is on the way can have anybody banned; "
                           "use https://");
    }
    return url;
}

nanoseconds read_span(TableReader& table, std::string_view key, std::string_view example,
                      nanoseconds otherwise, nanoseconds least, nanoseconds most) {
    const auto field = table.take(key);
    if (!field)
        return otherwise;
    const auto span = field->parsed(parse_duration, example).value_or(otherwise);
    if (span < least || span > most)
        field->fail("is out of range", "use a time of \"" + format_duration(least) + "\" to \"" +
                                           format_duration(most) + '"');
    return span;
}

void refuse(TableReader& table, std::string_view key, std::string_view why) {
    if (const auto field = table.take(key))
        field->fail(why, "remove it");
}

void read_crowdsec(TableReader& table, BanFeed& feed, std::vector<std::string>& warnings) {
    refuse(table, "file", "is not for CrowdSec, which has a url");
    refuse(table, "ttl", "is not for CrowdSec, whose decisions end by themselves");
    refuse(table, "max_change", "is not for CrowdSec, whose decisions come one by one");
    if (const auto url = table.require("url", kLapiExample))
        feed.url = read_url(*url, kLapiExample, warnings);
    if (const auto key = table.require("key_file", kKeyExample))
        feed.key_file = read_path(*key, kKeyExample);
    feed.interval = read_span(table, "interval", "\"10s\"", kCrowdsecInterval, kShortestInterval,
                              kLongestInterval);
}

void read_list(TableReader& table, BanFeed& feed, std::vector<std::string>& warnings) {
    refuse(table, "key_file", "is for CrowdSec alone");
    const auto file = table.take("file");
    const auto url = table.take("url");
    if (file)
        feed.file = read_path(*file, kFileExample);
    if (url)
        feed.url = read_url(*url, kUrlExample, warnings);
    if (file && url)
        url->fail("stands beside file", "remove one of them");
    if (!file && !url)
        table.fail(
            "url", "is missing",
            "add url = " + std::string(kUrlExample) + ", or file = " + std::string(kFileExample));
    feed.interval =
        read_span(table, "interval", "\"1h\"", url ? nanoseconds(kUrlInterval) : kFileInterval,
                  kShortestInterval, kLongestInterval);
    feed.ttl = read_span(table, "ttl", "\"1d\"",
                         std::max<nanoseconds>(kTtl, 2 * kLooksInTtl * feed.interval),
                         kLooksInTtl * feed.interval, kLongestTtl);
    if (const auto change = table.take("max_change"))
        feed.most_growth = feed.most_shrink =
            change->number(kLeastChange, kMostChange).value_or(kMostGrowth);
}

BanFeed read_feed(TableReader& table, std::string name, std::vector<std::string>& warnings) {
    BanFeed feed{.name = std::move(name),
                 .max_entries = kMaxEntries,
                 .most_growth = kMostGrowth,
                 .most_shrink = kMostShrink};
    if (const auto type = table.take("type"))
        feed.type = type->parsed(parse_type, "\"plain\"").value_or(feed.type);
    if (feed.type == FeedType::crowdsec)
        read_crowdsec(table, feed, warnings);
    else
        read_list(table, feed, warnings);
    if (const auto ca = table.take("ca_file"))
        feed.ca_file = read_path(*ca, "\"/etc/sluice/ca.pem\"");
    if (const auto most = table.take("max_entries"))
        feed.max_entries = most->integer(1, kMostEntries).value_or(feed.max_entries);
    table.finish();
    return feed;
}

}  // namespace

std::string_view feed_type_name(FeedType type) {
    switch (type) {
        case FeedType::automatic:
            return "auto";
        case FeedType::plain:
            return "plain";
        case FeedType::spamhaus:
            return "spamhaus";
        case FeedType::firehol:
            return "firehol";
        case FeedType::crowdsec:
            break;
    }
    return "crowdsec";
}

std::vector<BanFeed> read_feeds(const Field& field, std::vector<std::string>& warnings) {
    std::vector<BanFeed> feeds;
    auto tables = field.table("[feeds.spamhaus]");
    if (!tables)
        return feeds;
    for (const auto& [name, one] : tables->take_all()) {
        auto table = one.table("[feeds.spamhaus]");
        if (!table)
            continue;
        if (!is_valid_name(name))
            one.fail("is no valid name", "use 1 to 32 of a-z, 0-9 and \"-\", such as \"spamhaus\"");
        else if (feeds.size() == kMostFeeds)
            one.fail("is one feed too many", "use at most " + std::to_string(kMostFeeds));
        feeds.push_back(read_feed(*table, name, warnings));
    }
    return feeds;
}

Result<std::vector<BanFeed>> feeds_of(std::string_view toml_text, std::string_view file_name) {
    const auto config = read_toml(toml_text, file_name);
    if (!config)
        return config.error();
    Problems problems;
    TableReader root(*config, Location{std::string(file_name), 1, 1}, "", problems);
    std::vector<BanFeed> feeds;
    std::vector<std::string> warnings;
    if (const auto field = root.take("feeds"))
        feeds = read_feeds(*field, warnings);
    if (problems.first())
        return *problems.first();
    return feeds;
}

}  // namespace sluice
