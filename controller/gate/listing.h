// Listing: what people and feeds asked for, by whom and why; the flat tables follow from it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/bpf_hash.h"
#include "gate/rule_key.h"
#include "gate/tables.h"

namespace sluice {

// One list's word about one prefix.
struct Member {
    sluice_listing_key key{};
    sluice_listing entry{};

    [[nodiscard]] RuleKey rule_key() const;
    [[nodiscard]] Prefix prefix() const { return rule_key().prefix(); }
    [[nodiscard]] RuleKind kind() const { return static_cast<RuleKind>(key.kind); }
    [[nodiscard]] bool live(uint64_t now_ns) const {
        return entry.until_ns == SLUICE_NEVER || now_ns < entry.until_ns;
    }
    // By prefix, then kind, then list.
    friend bool operator<(const Member& a, const Member& b) { return compare(a, b) < 0; }
    static int compare(const Member& a, const Member& b);
};

sluice_listing_key listing_key(const Prefix& prefix, RuleKind kind, uint16_t list);

// What the fleet says under a name is a list of its own, beside this host's of that name: neither
// ends with the other.
std::string fleet_list(std::string_view source);
bool is_fleet_list(std::string_view list);
// The name, whoever says it.
std::string_view source_of(std::string_view list);

// How many bytes of a reason are kept beside this actor: who and why share the room of a note.
size_t reason_room(std::string_view actor);

// Whose word a rule is, and why.
struct RuleOrigin {
    std::string list{};
    std::string actor{};
    std::string reason{};
};

class Listing {
  public:
    explicit Listing(const Tables& tables);

    // At the start of each operation: another writer may have made a list.
    Status begin();

    [[nodiscard]] std::optional<uint16_t> find_list(std::string_view name) const;
    Result<uint16_t> find_or_make_list(std::string_view name);
    [[nodiscard]] std::string list_name(uint16_t list) const;

    [[nodiscard]] std::optional<sluice_listing> find(const sluice_listing_key& key) const {
        return entries_.find(key);
    }
    // Of all lists, expired ones too.
    [[nodiscard]] std::vector<Member> members(const RuleKey& key) const;
    [[nodiscard]] std::vector<Member> members(const RuleKey& key, RuleKind kind) const;
    // visit(member) for all of them, in no order. One that stays is among them, whoever writes
    // meanwhile.
    template <class Visit>
    Status for_each(Visit&& visit) const {
        return entries_.for_each([&](const sluice_listing_key& key, const sluice_listing& entry) {
            visit(Member{key, entry});
        });
    }
    [[nodiscard]] Result<std::vector<Member>> all() const;

    Status put(const Member& member);
    void erase(const Member& member) { entries_.erase(member.key); }
    // All or nothing. `before` are the members that stood there under the same keys; both are
    // sorted.
    Status put_all(std::span<const Member> members, std::span<const Member> before);
    // Undoes that. What stood there does so at every moment: somebody may be copying it.
    void take_back(std::span<const Member> members, std::span<const Member> before);
    void erase_all(std::span<const Member> members);
    [[nodiscard]] uint64_t capacity() const { return entries_.capacity(); }

    // Actor and reason are kept once, however many members share them; they are cut to what fits.
    uint32_t note(std::string_view actor, std::string_view reason);
    [[nodiscard]] RuleOrigin origin(const Member& member) const;

  private:
    // On failure some are there already.
    Status put_some(std::span<const Member> members);
    Status make_list(uint16_t list, std::string_view name);
    std::optional<uint32_t> put_note(const sluice_note& note);
    void drop_unused_notes();

    const Tables* tables_;
    BpfHash<sluice_listing_key, sluice_listing> entries_;
    BpfHash<uint32_t, sluice_note> notes_;
    std::array<std::string, SLUICE_MAX_LISTS> names_;
};

}  // namespace sluice
