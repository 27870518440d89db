// Feeds of bans, as [feeds.NAME] says: a block list that others keep, or the decisions of CrowdSec.
// They are the daemon's business alone, so they are no part of the Policy that a gate gets.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/config_reader.h"

namespace sluice {

enum class FeedType : uint8_t { automatic, plain, spamhaus, firehol, crowdsec };
std::string_view feed_type_name(FeedType type);  // as it is written: "auto", …

struct BanFeed {
    std::string name;  // of its list, too: `sluicectl bans --source NAME`
    FeedType type = FeedType::automatic;
    std::string file{};      // a block list: this,
    std::string url{};       // or this; of CrowdSec the address of its local API
    std::string key_file{};  // of CrowdSec: its API key
    std::string ca_file{};   // who signed the server's certificate; empty: the system's
    std::chrono::nanoseconds interval{};
    std::chrono::nanoseconds ttl{};  // of a block list: how long it holds when it can't be had
    uint64_t max_entries = 0;
    // A list that became longer, or shorter, by more than these factors is held back.
    double most_growth = 0;
    double most_shrink = 0;

    friend bool operator==(const BanFeed&, const BanFeed&) = default;
};

// The value of "feeds".
std::vector<BanFeed> read_feeds(const Field& field, std::vector<std::string>& warnings);

// Those of a configuration's text.
Result<std::vector<BanFeed>> feeds_of(std::string_view toml_text, std::string_view file_name);

}  // namespace sluice
