// What each member of a risk set had in the last pass, so that only what was added since counts:
// writers never lower a score, and say nothing of when it rose.
//
// 16 bytes a slot, at most 7 of 8 slots in use: 18 to 37 bytes a member, 32 MiB for a million.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice {

class MemberScores {
  public:
    // Twice as many as the largest sets that are known of; 64 MiB.
    static constexpr size_t kMost = size_t{1} << 21;

    MemberScores();

    void begin_pass();
    // What was added to the member since the last pass, 0 where that is not known: where it is seen
    // for the first time, while not all members of the last pass are known. A member that was not
    // there has begun at nothing. Within a pass only the first word about a member counts, as a
    // scan may name it twice. `score` is a number.
    double take(std::string_view member, double score);
    // The whole set was seen: whoever was not in it is known not to be.
    void end_pass();
    // It is another set, of which nothing is known yet; or, of one that begins empty, everything.
    void forget(bool begins_empty = false);

    [[nodiscard]] size_t size() const { return size_; }
    // Members that there was no room for, in this pass or the last one: they count for nothing.
    [[nodiscard]] size_t unknown() const { return unknown_; }

  private:
    // The hash's lowest bit is that of the pass; 0 is a free slot, and no hash.
    struct Slot {
        uint64_t key = 0;
        double score = 0;
    };
    static constexpr uint64_t kPassBit = 1;

    [[nodiscard]] uint64_t hash_of(std::string_view member) const;
    [[nodiscard]] Slot& find(uint64_t hash);
    void rebuild(size_t slots, bool only_seen);

    std::array<uint64_t, 2> seed_;  // members come from strangers
    std::vector<Slot> slots_;
    size_t size_ = 0, seen_ = 0, unknown_ = 0;
    uint64_t pass_ = 0;         // its bit
    bool is_complete_ = false;  // whoever is not here was not in the set
};

}  // namespace sluice
