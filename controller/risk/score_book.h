// The scores of sources, which fade, and whose turn it is to be banned. No I/O and no clock.
//
// A source is due when its score reaches `enter`, until it is banned or the score has faded below
// `leave`. It is not due again before its score was below `leave`; a ban that is over has used up
// what it was for, so its source begins again just below. Without new signals nobody is ever due.
//
// About 100 bytes a source that has a score or was banned lately, beside the members' (see
// member_scores.h): 25 MiB at most.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "net/address.h"
#include "policy/policy.h"
#include "risk/member_scores.h"

namespace sluice {

// Times are milliseconds of a clock of the caller's that goes on evenly.
struct SourceScore {
    double score = 0;
    uint64_t at_ms = 0;            // when it was that
    uint64_t since_ms = 0;         // of its first signal
    uint64_t banned_until_ms = 0;  // 0: never was; kForGood
    uint32_t times = 0;            // banned, within the memory
    bool is_held = false;          // not to be due: banned, or spared
    bool is_queued = false;        // due

    static constexpr uint64_t kForGood = ~uint64_t{0};
};

class ScoreBook {
  public:
    // Far more than may be banned in a day; only those who did something lately are among them.
    static constexpr size_t kMostSources = size_t{1} << 18;

    explicit ScoreBook(const RiskSettings& settings);
    void change(const RiskSettings& settings) { settings_ = settings; }

    // --- signals ---------------------------------------------------------------------------------
    void add(const Prefix& source, double amount, uint64_t now_ms);
    // Of a set whose scores only rise. A score that is no number, or endless, is left out.
    MemberScores& members() { return members_; }
    void see(std::string_view member, const Prefix& source, double score, uint64_t now_ms);

    // --- bans ------------------------------------------------------------------------------------
    // The next of those who are due, at most so many; they are asked for again only after wait().
    std::vector<Prefix> take_due(size_t most, uint64_t now_ms);
    // Some of those who are.
    [[nodiscard]] std::vector<Prefix> waiting(size_t most) const;
    // Not now: it stays due.
    void wait(const Prefix& source);
    // How long the next ban of a source is: twice the last one within the memory, up to the
    // longest. Nothing: for good.
    [[nodiscard]] std::optional<std::chrono::nanoseconds> next_ban(const Prefix& source,
                                                                   uint64_t now_ms) const;
    void banned(const Prefix& source, uint64_t now_ms);
    // The ban did not come about: the score is again as it was, and due.
    void undo_ban(const Prefix& source, const SourceScore& before);
    // It must not be banned.
    void spare(const Prefix& source);
    // Whether there was anything to forget.
    bool clear(const Prefix& source);
    // Everybody who is due begins anew; how many those were.
    size_t clear_due();

    // --- what is known ---------------------------------------------------------------------------
    [[nodiscard]] std::optional<SourceScore> find(const Prefix& source, uint64_t now_ms) const;
    struct Entry {
        Prefix source;
        SourceScore score;
    };
    // Highest first.
    [[nodiscard]] std::vector<Entry> highest(size_t most, uint64_t now_ms) const;
    // As another one has left it; what is known here already stays.
    void restore(const Entry& entry, uint64_t now_ms);
    // Forgets who has no score worth the name, and was not banned lately. To be called now and
    // then.
    void tidy(uint64_t now_ms);

    [[nodiscard]] size_t size() const { return sources_.size(); }
    [[nodiscard]] size_t due() const { return due_.size(); }
    // Scores that there was no room for, the lowest ones; since the start.
    [[nodiscard]] uint64_t forgotten() const { return forgotten_; }

  private:
    struct Hash {
        std::array<uint64_t, 2> seed;  // addresses come from strangers
        size_t operator()(const Prefix& source) const;
    };

    [[nodiscard]] SourceScore faded(SourceScore score, uint64_t now_ms) const;
    [[nodiscard]] uint32_t times_at(const SourceScore& score, uint64_t now_ms) const;
    void make_room(uint64_t now_ms);
    void queue(const Prefix& source, SourceScore& score);

    RiskSettings settings_;
    MemberScores members_;
    std::unordered_map<Prefix, SourceScore, Hash> sources_;
    std::deque<Prefix> due_;
    uint64_t forgotten_ = 0;
};

}  // namespace sluice
