#include "risk/member_scores.h"

#include <bit>
#include <cstring>
#include <random>
#include <utility>

namespace sluice {

namespace {

constexpr size_t kFewestSlots = 1024;

bool is_crowded(size_t used, size_t slots) {
    return used * 8 >= slots * 7;
}

// SipHash-1-3.
class Hasher {
  public:
    explicit Hasher(const std::array<uint64_t, 2>& seed)
        : v_{seed[0] ^ 0x736f6d6570736575U, seed[1] ^ 0x646f72616e646f6dU,
             seed[0] ^ 0x6c7967656e657261U, seed[1] ^ 0x7465646279746573U} {}

    uint64_t hash(std::string_view text) {
        uint64_t last = uint64_t{text.size()} << 56;
        for (; text.size() >= sizeof(uint64_t); text.remove_prefix(sizeof(uint64_t))) {
            uint64_t word = 0;
            std::memcpy(&word, text.data(), sizeof word);
            take(word);
        }
        for (size_t i = 0; i < text.size(); ++i)
            last |= uint64_t{static_cast<uint8_t>(text[i])} << 8 * i;
        take(last);
        v_[2] ^= 0xff;
        for (int i = 0; i < 3; ++i)
            mix();
        return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
    }

  private:
    void take(uint64_t word) {
        v_[3] ^= word;
        mix();
        v_[0] ^= word;
    }
    void mix() {
        v_[0] += v_[1];
        v_[1] = std::rotl(v_[1], 13) ^ v_[0];
        v_[0] = std::rotl(v_[0], 32);
        v_[2] += v_[3];
        v_[3] = std::rotl(v_[3], 16) ^ v_[2];
        v_[0] += v_[3];
        v_[3] = std::rotl(v_[3], 21) ^ v_[0];
        v_[2] += v_[1];
        v_[1] = std::rotl(v_[1], 17) ^ v_[2];
        v_[2] = std::rotl(v_[2], 32);
    }
    uint64_t v_[4];
};

}  // namespace

MemberScores::MemberScores() : slots_(kFewestSlots) {
    std::random_device random;
    for (uint64_t& word : seed_)
        word = uint64_t{random()} << 32 | random();
}

uint64_t MemberScores::hash_of(std::string_view member) const {
    const uint64_t hash = Hasher(seed_).hash(member) & ~kPassBit;
    return hash == 0 ? ~kPassBit : hash;
}

MemberScores::Slot& MemberScores::find(uint64_t hash) {
    const size_t mask = slots_.size() - 1;
    size_t at = static_cast<size_t>(hash >> 1) & mask;
    while (slots_[at].key != 0 && (slots_[at].key & ~kPassBit) != hash)
        at = (at + 1) & mask;
    return slots_[at];
}

void MemberScores::begin_pass() {
    pass_ ^= kPassBit;
    seen_ = unknown_ = 0;
}

double MemberScores::take(std::string_view member, double score) {
    const uint64_t hash = hash_of(member);
    Slot* slot = &find(hash);
    if (slot->key == 0) {
        if (size_ == kMost) {
            ++unknown_;
            return 0;
        }
        if (is_crowded(size_ + 1, slots_.size())) {
            rebuild(2 * slots_.size(), false);
            slot = &find(hash);
        }
        ++size_;
        ++seen_;
        *slot = {hash | pass_, score};
        return is_complete_ && score > 0 ? score : 0;
    }
    const bool again = (slot->key & kPassBit) == pass_;
    slot->key = hash | pass_;
    if (again)
        return 0;
    ++seen_;
    const double before = std::exchange(slot->score, score);
    return score > before ? score - before : 0;
}

void MemberScores::end_pass() {
    if (seen_ < size_)
        rebuild(slots_.size(), true);
    // With one that there was no room for, nobody who comes later is known to be new.
    is_complete_ = unknown_ == 0;
}

void MemberScores::forget(bool begins_empty) {
    slots_.assign(slots_.size(), Slot());
    size_ = seen_ = unknown_ = 0;
    is_complete_ = begins_empty;
}

void MemberScores::rebuild(size_t slots, bool only_seen) {
    if (only_seen)
        while (slots > kFewestSlots && !is_crowded(seen_, slots / 4))
            slots /= 2;
    const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(slots));
    for (const Slot& slot : before)
        if (slot.key != 0 && (!only_seen || (slot.key & kPassBit) == pass_))
            find(slot.key & ~kPassBit) = slot;
    size_ = only_seen ? seen_ : size_;
}

}  // namespace sluice
