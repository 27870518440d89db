// SourceRules: who is banned, allowed, protected or in a class, and what that means together.
//
// Precedence: an allow beats every ban, whatever the lengths; a protection beats a ban that was not
// forced; of classes the longest prefix wins. A prefix is banned for as long as any list says so.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/listing.h"
#include "gate/rule_tables.h"
#include "gate/table_use.h"
#include "gate/tables.h"

namespace sluice {

// Without a value: for good.
using Ttl = std::optional<std::chrono::nanoseconds>;
// Deadlines are kept as 60 bits of nanoseconds since boot, which end after 36 years.
inline constexpr std::chrono::hours kLongestTtl{30 * 365 * 24};

constexpr std::string_view kOperatorList = "operator";
constexpr std::string_view kPolicyList = "policy";
// The whitelist of another limiter, whose keys in Redis are called so.
constexpr std::string_view kRlList = "rl";

struct BanRequest {
    Ttl ttl{};
    std::string list{kOperatorList};
    std::string reason{};
    std::string actor{};
    bool forced = false;  // beats protections and the check for too wide a prefix
};

struct AllowRequest {
    Ttl ttl{};
    bool exempt = false;  // from budgets too
    std::string list{kOperatorList};
    std::string reason{};
    std::string actor{};
    bool forced = false;  // however wide the prefix
};

struct ProtectRequest {
    Ttl ttl{};
    std::string list{kOperatorList};
    std::string reason{};
    std::string actor{};
};

struct ClassifyRequest {
    uint8_t source_class = 0;  // 1 to 255
    Ttl ttl{};
    std::string list{kOperatorList};
    std::string reason{};
    std::string actor{};
};

struct RuleOutcome {
    bool added = false;        // this list had not said so before
    bool kept_longer = false;  // this list's ban lasted longer already and still does
    uint64_t until_ns = 0;     // of this list's word; SLUICE_NEVER = for good
};

struct RemovalOutcome {
    size_t removed = 0;                   // words of lists
    std::optional<Prefix> still_under{};  // what still bans (or allows) the prefix
    bool by_hand = false;  // it is in bans_manual too, which is nobody's but the hand's
};

// One word of a file, feed or policy.
struct RuleEntry {
    Prefix prefix{};
    RuleKind kind = RuleKind::ban;
    Ttl ttl{};
    bool forced = false;
    bool exempt = false;
    uint8_t source_class = 0;
    uint64_t since_s = 0;  // wall clock; 0 = now
};

struct ImportRequest {
    std::string reason{};
    std::string actor{};
    bool forced = false;    // as if each entry were
    bool rehearse = false;  // import() only counts: what would be taken, where there is room
    bool however_wide = false;
    // Also bans that an allow or a protection beats, which are counted as refused all the same:
    // they hold once that goes.
    bool list_overruled = false;
};

// Bans that were not taken: how many, and the first few for people to see.
struct Refusals {
    size_t count = 0;
    std::vector<Prefix> named{};

    void add(const Prefix& prefix);
};

struct ImportOutcome {
    size_t added = 0;
    size_t changed = 0;  // another deadline, class or flag
    size_t unchanged = 0;
    size_t removed = 0;  // by replace_list
    size_t duplicates = 0;
    size_t over = 0;     // had ended already
    Refusals allowed{};  // an allow covers them
    Refusals protected_{};
    Refusals too_wide{};
};

struct KeptRule {
    RuleEntry entry{};
    uint32_t origin = 0;  // of KeptRules::origins
};

// Rules as they were kept elsewhere.
struct KeptRules {
    std::vector<RuleOrigin> origins;  // few
    std::vector<KeptRule> rules;
};

// What the listing of `tables` has at this time: see Tables::open_listing().
Result<KeptRules> kept_rules(const Tables& tables, uint64_t now_ns);

struct ListedRule {
    Prefix prefix{};
    RuleKind kind = RuleKind::ban;
    std::string list{};
    uint64_t until_ns = 0;  // monotonic; SLUICE_NEVER = for good
    uint64_t since_s = 0;   // wall clock
    std::string actor{};
    std::string reason{};
    bool forced = false;
    bool exempt = false;
    uint8_t source_class = 0;
    bool overruled = false;  // of list(): a ban that an allow or a protection beats altogether
};

struct RuleList {
    std::vector<ListedRule> rules;  // by address
    size_t total = 0;               // before the limit
};

struct SourceMatch {
    Prefix prefix{};
    uint32_t flags = 0;  // SLUICE_RULE_*
    uint8_t source_class = 0;
    uint64_t until_ns = 0;
    std::vector<ListedRule> listed{};  // who says so
};

enum class SourceStanding { unknown, allowed, exempt, guarded, banned };

struct SourceLookup {
    SourceStanding standing = SourceStanding::unknown;
    uint8_t source_class = 0;
    std::optional<SourceMatch> deciding;  // what the standing comes from; none for a ban by hand
    std::vector<SourceMatch> matches;     // all that cover the address, longest first
    std::optional<uint64_t> by_hand_until_ns;  // bans_manual, where that is on
};

struct RuleCounts {
    size_t bans_wanted = 0;     // distinct prefixes that a list bans
    size_t bans_enforced = 0;   // of them, those that the packet path finds
    size_t bans_overruled = 0;  // of those, the ones that an allow or a protection beats altogether
    size_t bans_by_hand = 0;    // in bans_manual, where that is on
    size_t allows = 0;
    size_t guarded = 0;
    size_t classified = 0;
    uint64_t first_end_ns = SLUICE_NEVER;  // when the first of them ends
    bool unswept = false;                  // what has ended still takes room in the tables
    std::vector<TableUse> tables;
};

// Whoever changes something holds the WriterLock of the tables.
class SourceRules {
  public:
    // `tables` stays where it is for as long as this.
    explicit SourceRules(Tables& tables);

    Result<RuleOutcome> ban(const Prefix& prefix, const BanRequest& request);
    Result<RuleOutcome> allow(const Prefix& prefix, const AllowRequest& request);
    Result<RuleOutcome> protect(const Prefix& prefix, const ProtectRequest& request);
    Result<RuleOutcome> classify(const Prefix& prefix, const ClassifyRequest& request);

    // Takes back the bans of the prefix and of all inside it: those of one list, or of all that
    // are this host's own. Refused where a wider ban would go on holding, unless a list is named.
    Result<RemovalOutcome> unban(const Prefix& prefix, std::optional<std::string_view> list = {});
    // How many bans that would be.
    [[nodiscard]] Result<size_t> bans_inside(const Prefix& prefix,
                                             std::optional<std::string_view> list = {}) const;
    // The same for allows. Those of the policy and of another limiter stay, too, unless their list
    // is named.
    Result<RemovalOutcome> unallow(const Prefix& prefix, std::optional<std::string_view> list = {});
    // Of exactly this prefix, one list's word: for what is neither ban nor allow.
    Result<RemovalOutcome> withdraw(const Prefix& prefix, RuleKind kind, std::string_view list);
    // Whether anything was ever said under this name, here or by the fleet; an empty list is known
    // as well.
    Result<bool> knows_list(std::string_view list);
    // All bans of a list; how many that were.
    Result<size_t> flush(std::string_view list);

    // Adds many at once: all that can be taken, or on an error nothing.
    Result<ImportOutcome> import(std::string_view list, std::span<const RuleEntry> entries,
                                 const ImportRequest& request);
    // Makes the list exactly these; packets see the old one or the new one.
    Result<ImportOutcome> replace_list(std::string_view list, std::span<const RuleEntry> entries,
                                       const ImportRequest& request);
    // Lists again what was listed before, also what an allow or a protection beats by now: it is
    // overruled again. Of one list's bans the longest holds, else what stands there stays. All or
    // nothing; how many of them are listed now.
    Result<size_t> restore(const KeptRules& kept);
    // Builds the flat tables anew from the listing.
    Status rebuild();
    // The same where a writer was killed half-way; every change does this first.
    Status repair();
    // Drops everything that has expired; how many words of lists that were.
    Result<size_t> sweep();
    // A part of that, another one each time. Not counted as a change: copies of what is listed do
    // not have what has expired.
    Status sweep_some();

    // By address; limit 0 = all. Expired ones are never listed. With a source: what this host and
    // the fleet say under that name.
    [[nodiscard]] Result<RuleList> list(RuleKind kind, std::optional<std::string_view> source = {},
                                        size_t limit = 0);
    // Every list's word for a protection; cheap, however much is banned.
    [[nodiscard]] Result<std::vector<ListedRule>> protections();
    // What the packet path makes of an address now, from the tables that it reads itself.
    [[nodiscard]] Result<SourceLookup> lookup(const IpAddress& address);
    [[nodiscard]] Result<RuleCounts> counts() const;
    // Those in bans_manual that hold, where that is on.
    [[nodiscard]] Result<size_t> bans_by_hand() const;

  private:
    struct Word {
        std::string_view list;
        RuleKind kind;
        Ttl ttl;
        unsigned flags;
        uint8_t source_class = 0;
        std::string_view actor;
        std::string_view reason;
    };
    struct Cover {
        RuleKey key;
        uint64_t value;
    };
    // What becomes of the listing; all sorted by key.
    struct Change {
        std::vector<Member> put;
        std::vector<Member> before;  // what stood under the keys of `put`
        std::vector<Member> erase;
    };

    // Another process may have changed things since the last call.
    Status refresh();
    // At the start and the end of each change. In between mark_dirty() stands before the first
    // write.
    Status begin();
    Status finish();
    Status clear_up();
    void mark_dirty();
    void mark_done();
    // Makes the flat tables follow the listing for one prefix, and drops what has expired there.
    Status settle(const RuleKey& key);
    // Expired ones of the whole listing; how many that were.
    Result<size_t> drop_expired();
    // Tries again without what has expired where a change finds no room. A failed change has left
    // no trace.
    Status with_room(const std::function<Status()>& change);
    Result<RuleOutcome> add(const Prefix& prefix, const Word& word);
    [[nodiscard]] Error would_not_pass(const Prefix& prefix, RuleKind kind,
                                       const Prefix& cover) const;
    Result<RemovalOutcome> remove(const Prefix& prefix, RuleKind kind,
                                  std::optional<std::string_view> list);
    // Whether the fleet has a rule of the kind on exactly this prefix.
    [[nodiscard]] bool fleet_says(const Prefix& prefix, RuleKind kind) const;
    // The live rule with one of these flags on the widest prefix that contains `key`, itself
    // included.
    [[nodiscard]] std::optional<Cover> cover_of(const RuleKey& key, uint32_t flags) const;
    [[nodiscard]] Status check_ban(const Prefix& prefix, bool forced) const;
    [[nodiscard]] std::optional<uint64_t> banned_by_hand(const IpAddress& address) const;
    [[nodiscard]] Result<std::vector<TableUse>> table_use(size_t listed) const;
    [[nodiscard]] ListedRule describe(const Member& member) const;

    // Of the prefix and all inside it, what remove() takes back; sorted.
    [[nodiscard]] Result<std::vector<Member>> inside(const Prefix& prefix, RuleKind kind,
                                                     std::optional<std::string_view> list) const;

    // source_bulk.cpp
    Result<std::vector<Member>> take_entries(uint16_t list, std::span<const RuleEntry> entries,
                                             const ImportRequest& request, ImportOutcome& outcome);
    Status refuse_guarded(std::vector<Member>& bans, const ImportRequest& request,
                          ImportOutcome& outcome) const;
    // One by one or together, whichever is quicker; all or nothing.
    Status apply(const Change& change);
    Status apply_one_by_one(const Change& change);
    Status apply_together(std::span<const Member> listed, const Change& change);
    Status rebuild_tables();
    [[nodiscard]] Result<std::vector<Member>> sorted_listing() const;

    // source_restore.cpp
    Result<std::vector<Member>> members_of(const KeptRules& kept);

    Tables* tables_;
    Listing listing_;
    RuleTables rules_;
};

// What holds for a prefix when its members are put together: values of the tables.
std::vector<uint64_t> combine(std::span<const Member> members, uint64_t now_ns);
// Sorts by key; equal keys become one, the last of them, and bans last as long as the longest. How
// many there were too many.
size_t merge_duplicates(std::vector<Member>& members);
// When a time to live that starts now ends; an error where that is nothing or beyond 36 years.
Result<uint64_t> deadline_after(uint64_t now_ns, const Ttl& ttl);
// Whether a prefix is so wide that it takes force: shorter than IPv4 /8 or IPv6 /19.
bool is_too_wide(const Prefix& prefix);

}  // namespace sluice
