// SourceRules against a model that is too simple to be wrong: a list, read from end to end.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "gate/source_rules.h"
#include "test_gate.h"

namespace sluice {

namespace {

constexpr uint64_t kSecond = 1'000'000'000;

class Model {
  public:
    struct Rule {
        uint64_t until_ns = 0;
        bool forced = false;
        bool exempt = false;
        uint8_t source_class = 0;
    };
    using Name = std::tuple<RuleKind, Prefix, std::string>;

    void expire(uint64_t now) {
        std::erase_if(rules_, [now](const auto& rule) { return rule.second.until_ns <= now; });
    }
    [[nodiscard]] bool covered(RuleKind kind, const Prefix& prefix, bool strictly = false) const {
        return std::any_of(rules_.begin(), rules_.end(), [&](const auto& rule) {
            const auto& [its_kind, its_prefix, list] = rule.first;
            return its_kind == kind && its_prefix.contains(prefix) &&
                   (!strictly || its_prefix != prefix);
        });
    }
    [[nodiscard]] bool may_ban(const Prefix& prefix, bool forced) const {
        return !covered(RuleKind::allow, prefix) &&
               (forced || (!is_too_wide(prefix) && !covered(RuleKind::protect, prefix)));
    }
    void put(RuleKind kind, const Prefix& prefix, const std::string& list, Rule rule) {
        auto [place, added] = rules_.try_emplace({kind, prefix, list}, rule);
        if (added)
            return;
        if (kind == RuleKind::ban) {
            rule.until_ns = std::max(rule.until_ns, place->second.until_ns);
            rule.forced |= place->second.forced;
        }
        place->second = rule;
    }
    size_t take_inside(RuleKind kind, const Prefix& prefix, const std::string* list) {
        return std::erase_if(rules_, [&](const auto& rule) {
            const auto& [its_kind, its_prefix, its_list] = rule.first;
            return its_kind == kind && prefix.contains(its_prefix) &&
                   (list == nullptr || its_list == *list);
        });
    }
    size_t flush(const std::string& list) {
        return std::erase_if(rules_, [&](const auto& rule) {
            return std::get<0>(rule.first) == RuleKind::ban && std::get<2>(rule.first) == list;
        });
    }
    void replace(const std::string& list) {
        std::erase_if(rules_, [&](const auto& rule) { return std::get<2>(rule.first) == list; });
    }

    [[nodiscard]] SourceStanding standing(const IpAddress& address) const {
        bool allowed = false;
        bool exempt = false;
        bool forced = false;
        bool guarded = false;
        bool banned = false;
        for (const auto& [name, rule] : rules_) {
            const auto& [kind, prefix, list] = name;
            if (!prefix.contains(address))
                continue;
            allowed |= kind == RuleKind::allow;
            exempt |= kind == RuleKind::allow && rule.exempt;
            guarded |= kind == RuleKind::protect;
            banned |= kind == RuleKind::ban;
            forced |= kind == RuleKind::ban && rule.forced;
        }
        if (exempt)
            return SourceStanding::exempt;
        if (allowed)
            return SourceStanding::allowed;
        if (forced)
            return SourceStanding::banned;
        if (guarded)
            return SourceStanding::guarded;
        return banned ? SourceStanding::banned : SourceStanding::unknown;
    }
    [[nodiscard]] uint8_t source_class(const IpAddress& address) const {
        unsigned longest = 0;
        uint8_t found = 0;
        for (const auto& [name, rule] : rules_) {
            const auto& prefix = std::get<1>(name);
            if (std::get<0>(name) == RuleKind::classify && prefix.contains(address) &&
                prefix.length() + 1 > longest) {
                longest = prefix.length() + 1;
                found = rule.source_class;
            }
        }
        return found;
    }
    [[nodiscard]] size_t banned_prefixes() const {
        std::set<Prefix> distinct;
        for (const auto& [name, rule] : rules_)
            if (std::get<0>(name) == RuleKind::ban)
                distinct.insert(std::get<1>(name));
        return distinct.size();
    }
    [[nodiscard]] size_t count(RuleKind kind) const {
        return static_cast<size_t>(std::count_if(rules_.begin(), rules_.end(), [kind](auto& rule) {
            return std::get<0>(rule.first) == kind;
        }));
    }

  private:
    std::map<Name, Rule> rules_;
};

class SourceModelTest : public GateTest, public ::testing::WithParamInterface<unsigned> {
  protected:
    unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }
    bool one_in(unsigned n) { return below(n) == 0; }

    // Few networks and many lengths, so that rules meet.
    IpAddress any_address() {
        if (one_in(2))
            return IpAddress::from_ipv4(0x0a000000U | below(2) << 16 | below(3) << 8 | below(24));
        std::array<uint8_t, 16> bytes{0x20, 0x01, 0x0d, 0xb8};
        bytes[5] = static_cast<uint8_t>(below(3));
        bytes[7] = static_cast<uint8_t>(below(3));
        bytes[15] = static_cast<uint8_t>(below(6));
        return IpAddress::from_bytes(bytes);
    }
    Prefix any_prefix() {
        const auto address = any_address();
        constexpr std::array kIpv4 = {32U, 32U, 32U, 32U, 31U, 30U, 28U, 24U, 23U, 20U, 16U, 8U};
        constexpr std::array kIpv6 = {128U, 128U, 128U, 127U, 80U, 64U, 64U, 60U, 48U, 32U, 20U};
        const bool ipv4 = address.family() == Family::ipv4;
        return Prefix::make(address, ipv4 ? kIpv4[below(kIpv4.size())] : kIpv6[below(kIpv6.size())])
            .value();
    }
    Ttl any_ttl() {
        if (one_in(3))
            return std::nullopt;
        // Half seconds: never the very moment at which the clock of the test stands.
        return std::chrono::seconds(1 + below(400)) + std::chrono::milliseconds(500);
    }
    uint64_t until(const Ttl& ttl) const {
        return ttl ? now_ + static_cast<uint64_t>(ttl->count()) : SLUICE_NEVER;
    }
    std::string any_list() { return std::array{"operator", "feed", "third"}[below(3)]; }

    void step(SourceRules& rules);
    void import(SourceRules& rules);
    void replace(SourceRules& rules);
    void compare(SourceRules& rules);

    std::mt19937_64 random_{GetParam()};
    uint64_t now_ = 1000 * kSecond;
    Model model_;
};

void SourceModelTest::step(SourceRules& rules) {
    const auto prefix = any_prefix();
    const auto list = any_list();
    const auto ttl = any_ttl();
    switch (below(16)) {
        case 0:
        case 1: {
            const bool exempt = one_in(4);
            if (!one_in(3))
                break;
            ASSERT_TRUE(rules.allow(prefix, {.ttl = ttl, .exempt = exempt, .list = list}));
            model_.put(RuleKind::allow, prefix, list, {until(ttl), false, exempt, 0});
            break;
        }
        case 2:
            ASSERT_TRUE(rules.protect(prefix, {.ttl = ttl, .list = list}));
            model_.put(RuleKind::protect, prefix, list, {until(ttl), false, false, 0});
            break;
        case 3: {
            const auto source_class = static_cast<uint8_t>(1 + below(255));
            ASSERT_TRUE(rules.classify(
                prefix, {.source_class = source_class, .ttl = std::nullopt, .list = "policy"}));
            model_.put(RuleKind::classify, prefix, "policy",
                       {SLUICE_NEVER, false, false, source_class});
            break;
        }
        case 4:
        case 5: {
            const bool named = one_in(2);
            const auto removed =
                named ? rules.unban(prefix, list) : rules.unban(prefix, std::nullopt);
            if (!named && model_.covered(RuleKind::ban, prefix, true)) {
                ASSERT_FALSE(removed);
                ASSERT_EQ(removed.error().code, ErrorCode::failed);
                break;
            }
            const size_t gone = model_.take_inside(RuleKind::ban, prefix, named ? &list : nullptr);
            ASSERT_EQ(removed ? removed->removed : 0, gone);
            break;
        }
        case 6:
        case 7: {
            const auto removed = rules.unallow(prefix, list);
            const size_t gone = model_.take_inside(RuleKind::allow, prefix, &list);
            ASSERT_EQ(removed ? removed->removed : 0, gone);
            break;
        }
        case 8: {
            const bool there = model_.covered(RuleKind::protect, prefix);
            const auto removed = rules.withdraw(prefix, RuleKind::protect, list);
            if (removed) {
                ASSERT_TRUE(there);
                Model::Rule over{};
                model_.put(RuleKind::protect, prefix, list, over);
                model_.expire(now_);
            }
            break;
        }
        case 9:
            now_ += (1 + below(20)) * kSecond;
            tables_->settings().test_now_ns = now_;
            model_.expire(now_);
            break;
        case 10:
            if (one_in(20)) {
                ASSERT_EQ(rules.flush(list).value(), model_.flush(list));
            } else if (one_in(20)) {
                ASSERT_TRUE(rules.rebuild());
            } else if (one_in(20)) {
                ASSERT_TRUE(rules.sweep());
            }
            break;
        case 11:
            if (one_in(8))
                import(rules);
            else if (one_in(8))
                replace(rules);
            break;
        default: {
            const bool forced = one_in(6);
            const auto done = rules.ban(prefix, {.ttl = ttl, .list = list, .forced = forced});
            ASSERT_EQ(done.has_value(), model_.may_ban(prefix, forced))
                << prefix.to_string() << (done ? "" : ": " + done.error().message);
            if (done)
                model_.put(RuleKind::ban, prefix, list, {until(ttl), forced, false, 0});
        }
    }
}

void SourceModelTest::import(SourceRules& rules) {
    std::vector<RuleEntry> entries;
    for (unsigned i = below(60); i > 0; --i)
        entries.push_back({.prefix = any_prefix(), .ttl = any_ttl(), .forced = one_in(6)});
    ASSERT_TRUE(rules.import("third", entries, {}));
    // Duplicates are one before anything is asked.
    std::map<Prefix, Model::Rule> merged;
    for (const auto& entry : entries) {
        if (is_too_wide(entry.prefix) && !entry.forced)
            continue;
        auto& rule = merged[entry.prefix];
        rule.until_ns = std::max(rule.until_ns, until(entry.ttl));
        rule.forced |= entry.forced;
    }
    for (const auto& [prefix, rule] : merged)
        if (model_.may_ban(prefix, rule.forced))
            model_.put(RuleKind::ban, prefix, "third", rule);
}

void SourceModelTest::replace(SourceRules& rules) {
    std::vector<RuleEntry> entries;
    std::set<Prefix> seen;
    for (unsigned i = below(30); i > 0; --i) {
        const auto prefix = any_prefix();
        if (!seen.insert(prefix).second)
            continue;
        if (one_in(2))
            entries.push_back({.prefix = prefix,
                               .kind = RuleKind::classify,
                               .source_class = static_cast<uint8_t>(1 + below(255))});
        else
            entries.push_back({.prefix = prefix, .kind = RuleKind::allow, .exempt = one_in(4)});
    }
    const auto done = rules.replace_list("policy", entries, {});
    ASSERT_TRUE(done) << done.error().message;
    model_.replace("policy");
    for (const auto& entry : entries)
        model_.put(entry.kind, entry.prefix, "policy",
                   {SLUICE_NEVER, false, entry.exempt, entry.source_class});
}

void SourceModelTest::compare(SourceRules& rules) {
    for (int i = 0; i < 40; ++i) {
        const auto address = any_address();
        const auto found = rules.lookup(address);
        ASSERT_TRUE(found);
        ASSERT_EQ(static_cast<int>(found->standing), static_cast<int>(model_.standing(address)))
            << address.to_string();
        const bool matters = found->standing != SourceStanding::allowed &&
                             found->standing != SourceStanding::exempt &&
                             found->standing != SourceStanding::banned;
        if (matters) {
            ASSERT_EQ(found->source_class, model_.source_class(address)) << address.to_string();
        }
        if (found->standing != SourceStanding::unknown) {
            ASSERT_TRUE(found->deciding) << address.to_string();
            ASSERT_FALSE(found->deciding->listed.empty()) << address.to_string();
        }
    }
    const auto counts = rules.counts().value();
    ASSERT_EQ(counts.bans_wanted, model_.banned_prefixes());
    ASSERT_EQ(counts.bans_enforced, model_.banned_prefixes());
    for (const auto kind : {RuleKind::ban, RuleKind::allow, RuleKind::protect, RuleKind::classify})
        ASSERT_EQ(rules.list(kind).value().total, model_.count(kind));
}

TEST_P(SourceModelTest, AgreesAfterThousandsOfChanges) {
    auto sizes = small_sizes();
    sizes.ban4_lines = 8;  // most of it lies in the overflow
    sizes.rule_lines = 32;
    make_tables(sizes);
    tables_->settings().test_now_ns = now_;
    SourceRules rules(*tables_);
    for (int i = 0; i < 3000; ++i) {
        ASSERT_NO_FATAL_FAILURE(step(rules)) << "step " << i;
        if (i % 10 == 0) {
            ASSERT_NO_FATAL_FAILURE(compare(rules)) << "step " << i;
        }
    }
    ASSERT_TRUE(rules.rebuild());
    ASSERT_NO_FATAL_FAILURE(compare(rules));
}

INSTANTIATE_TEST_SUITE_P(Seeds, SourceModelTest, ::testing::Values(1U, 2U, 3U, 4U));

}  // namespace

}  // namespace sluice
