#include "gate/inquiry.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <limits>

#include "base/quantities.h"
#include "gate/counters.h"
#include "gate/policy_store.h"
#include "gate/publish.h"
#include "gate/service_ids.h"
#include "gate/source_state.h"
#include "gate/switch_word.h"
#include "policy/compile.h"
#include "policy/rule_id.h"
#include "policy/written_rate.h"

namespace sluice {

namespace {

using std::chrono::nanoseconds;

// Frames as they usually are: full ones of data, the smallest of anything else.
constexpr uint64_t kDataBytes = 1514;
constexpr uint64_t kSmallBytes = 74;

uint32_t dimensions_of(PacketKind kind) {
    constexpr uint32_t kAny = 1u << SLUICE_PACKETS | 1u << SLUICE_BYTES;
    if (kind == PacketKind::connection)
        return kAny | 1u << SLUICE_CONNECTIONS;
    return kind == PacketKind::data ? kAny | 1u << SLUICE_DATA : kAny;
}

std::string_view kind_name(PacketKind kind) {
    switch (kind) {
        case PacketKind::connection:
            return "a new connection";
        case PacketKind::data:
            return "a packet with data";
        default:
            return "a packet without data";
    }
}

std::string rate_of(const Inquiry& inquiry, const std::string& service, uint32_t rule) {
    return inquiry.policy ? written_rate(*inquiry.policy, service, rule_from_index(rule)) : "";
}

class Asking {
  public:
    Asking(const Tables& tables, const Inquiry& inquiry)
        : tables_(tables),
          inquiry_(inquiry),
          service_(service_in_force(tables, inquiry.service_id)),
          state_(tables, inquiry.source, inquiry.service_id, inquiry.found.source_class),
          dimensions_(dimensions_of(inquiry.kind)),
          now_ns_(gate_now_ns(tables)) {
        answer_.why.service = inquiry.service_id == SLUICE_SERVICE_OTHER
                                  ? "other"
                                  : service_name(tables, inquiry.service_id);
        answer_.why.actor = "policy";
    }

    Result<Answer> ask() {
        const auto standing = inquiry_.found.standing;
        if (standing == SourceStanding::exempt)
            return passes(SLUICE_pass_exempt);
        const bool personal = standing != SourceStanding::allowed;
        bool decided = personal && (ask_jail() || ask_buckets(SLUICE_PER_SOURCE));
        if (personal && !decided) {
            const auto window = ask_window();
            if (!window)
                return window.error();
            decided = *window || ask_buckets(SLUICE_PER_PREFIX);
        }
        if (!decided)
            decided = ask_budgets();
        if (decided || answer_.severity != Severity::passes)
            return drops();
        if (!personal)
            return passes(SLUICE_pass_allowed);
        return passes(has_limits() ? SLUICE_pass_within : SLUICE_pass_unlimited);
    }

  private:
    [[nodiscard]] bool has_limits() const {
        return (service_.source_limits | service_.prefix_limits | service_.budget_limits) != 0 ||
               service_.window.limit != 0;
    }

    [[nodiscard]] uint64_t units(uint32_t dimension) const {
        if (dimension != SLUICE_BYTES)
            return 1;
        return inquiry_.kind == PacketKind::data ? kDataBytes : kSmallBytes;
    }

    [[nodiscard]] uint32_t mode_of(const __u64& word) const {
        return sluice_switch_value(published(word), now_ns_);
    }
    [[nodiscard]] uint32_t service_mode() const {
        return std::min(mode_of(tables_.settings().mode),
                        mode_of(tables_.switches[inquiry_.service_id].service.word));
    }

    [[nodiscard]] std::string rule_id(uint32_t rule) const {
        return format_rule_id({answer_.why.service, rule_from_index(rule)});
    }

    // Keeps what is nearest to its limit, for a packet that passes all of them.
    void note_nearest(uint32_t rule, const LimitState& state) {
        const double headroom = state.burst == 0 ? 0
                                                 : static_cast<double>(state.available) /
                                                       static_cast<double>(state.burst);
        if (answer_.severity != Severity::passes || (answer_.why.bucket && headroom >= nearest_))
            return;
        nearest_ = answer_.headroom = headroom;
        describe(rule, state);
    }

    void describe(uint32_t rule, const LimitState& state) {
        answer_.why.rule = rule_id(rule);
        answer_.why.bucket =
            Why::Bucket{rate_of(inquiry_, answer_.why.service, rule), state.burst, state.available};
    }

    // A limit says no; true where that drops the packet now. As in the packet path, the first one
    // that only observe mode lets through is remembered, and those that are off say nothing.
    bool refuses(uint32_t rule, int verdict, const LimitState& state) {
        const uint32_t own = mode_of(tables_.switches[inquiry_.service_id].rule[rule].word);
        const uint32_t mode = std::min(own, service_mode());
        const bool first = answer_.severity == Severity::passes;
        if (mode == SLUICE_MODE_OFF)
            answer_.why.notes.push_back(rule_id(rule) + " is over its limit, but off");
        if (mode == SLUICE_MODE_OFF || (mode == SLUICE_MODE_OBSERVE && !first))
            return false;
        describe(rule, state);
        answer_.why.expires_in = state.wait;
        verdict_ = verdict;
        answer_.headroom = 0;
        answer_.severity = mode == SLUICE_MODE_ENFORCE ? Severity::drops : Severity::would_drop;
        return mode == SLUICE_MODE_ENFORCE;
    }

    bool ask_jail() {
        if (service_.jail_ns == 0)
            return false;
        const bool is_enforced = service_mode() == SLUICE_MODE_ENFORCE;
        const auto left = state_.jail(!is_enforced);
        if (!left)
            return false;
        verdict_ = SLUICE_drop_jailed;
        answer_.severity = is_enforced ? Severity::drops : Severity::would_drop;
        answer_.headroom = 0;
        answer_.why.expires_in = *left;
        answer_.why.notes.push_back(
            "it went over a limit of the service, which jails for " +
            format_duration(nanoseconds(static_cast<int64_t>(service_.jail_ns))));
        return true;
    }

    bool ask_buckets(uint32_t scope) {
        const bool is_source = scope == SLUICE_PER_SOURCE;
        const uint32_t limited = is_source ? service_.source_limits : service_.prefix_limits;
        for (uint32_t dimension = 0; dimension < SLUICE_DIMENSIONS; ++dimension) {
            if ((limited & dimensions_ & 1u << dimension) == 0)
                continue;
            const uint32_t rule = sluice_rule(scope, dimension);
            const LimitState state = state_.bucket(scope, dimension, units(dimension));
            if (is_source)
                note_part(dimension, rule);
            const int verdict = is_source
                                    ? SLUICE_drop_source_connections + static_cast<int>(dimension)
                                    : SLUICE_drop_prefix;
            if (state.admits)
                note_nearest(rule, state);
            else if (refuses(rule, verdict, state))
                return true;
        }
        return false;
    }

    void note_part(uint32_t dimension, uint32_t rule) {
        const auto part = state_.part(dimension);
        if (!part)
            return;
        std::array<char, 16> percent;
        (void)std::snprintf(percent.data(), percent.size(), "%.3g", part->part * 100);
        answer_.why.notes.push_back(
            rule_id(rule) + ": here " + percent.data() + " % of " +
            rate_of(inquiry_, answer_.why.service, rule) +
            ", as the source is heavy on other hosts of the fleet too; for another " +
            format_duration(std::chrono::ceil<std::chrono::milliseconds>(part->left)));
    }

    Result<bool> ask_window() {
        if (service_.window.limit == 0 || (dimensions_ & 1u << SLUICE_CONNECTIONS) == 0)
            return false;
        const uint32_t rule = sluice_rule(SLUICE_PER_SOURCE, SLUICE_CONNECTIONS);
        const auto state = state_.window();
        if (!state)
            return state.error();
        if (!state->admits)
            return refuses(rule, SLUICE_drop_source_window, *state);
        note_nearest(rule, *state);
        return false;
    }

    bool ask_budgets() {
        for (uint32_t dimension = 0; dimension < SLUICE_DIMENSIONS; ++dimension) {
            if ((service_.budget_limits & dimensions_ & 1u << dimension) == 0)
                continue;
            const uint32_t rule = sluice_rule(SLUICE_BUDGET, dimension);
            const BudgetState budget =
                budget_state(tables_, inquiry_.service_id, dimension, units(dimension));
            const LimitState state{budget.admits, budget.burst, budget.available, budget.wait};
            if (const int verdict = budget_verdict(budget, dimension); verdict == SLUICE_CONTINUE)
                note_nearest(rule, state);
            else if (refuses(rule, verdict, state))
                return true;
        }
        return false;
    }

    int budget_verdict(const BudgetState& budget, uint32_t dimension) {
        if (budget.shed > 0)
            answer_.why.notes.push_back(
                rule_id(sluice_rule(SLUICE_BUDGET, dimension)) + " is short: " +
                std::to_string(static_cast<int>(budget.shed * 100 + 0.5)) + " % of sources wait");
        if (is_shed(tables_, inquiry_.source, inquiry_.service_id, dimension))
            return SLUICE_drop_shed;
        const bool waits_as_new = dimension != SLUICE_CONNECTIONS && budget.is_short &&
                                  inquiry_.kind == PacketKind::connection;
        return waits_as_new || !budget.admits ? SLUICE_drop_budget : SLUICE_CONTINUE;
    }

    Answer drops() {
        const bool would = answer_.severity != Severity::drops;
        Why& why = answer_.why;
        why.verdict = counter_name(sluice_counter_index(verdict_, would ? 1 : 0));
        why.notes.insert(why.notes.begin(), "asked as " + std::string(kind_name(inquiry_.kind)));
        if ((service_.flags & SLUICE_SERVICE_REPLY_EXEMPT) != 0 &&
            inquiry_.kind != PacketKind::connection)
            why.notes.emplace_back(
                "replies to connections that this host opened pass all the same");
        note_switches();
        return answer_;
    }

    // An operator's word behind the modes that decided.
    void note_switches() {
        const auto note = [this](const std::string& id, const __u64& word) {
            const SwitchWord s = SwitchWord::from(published(word)).settled(now_ns_);
            if (!s.is_override())
                return;
            std::string text = id + " is switched to " +
                               std::string(mode_name(static_cast<Mode>(s.now))) + " by an operator";
            if (s.deadline != 0)
                text += " for another " +
                        std::to_string((s.deadline_ns() - now_ns_) / 1'000'000'000) + " s";
            answer_.why.notes.push_back(std::move(text));
        };
        const sluice_service_switches& switches = tables_.switches[inquiry_.service_id];
        note("the gate", tables_.settings().mode);
        note(answer_.why.service, switches.service.word);
        for (uint32_t rule = 0; rule < SLUICE_RULES; ++rule)
            if (has_rule(service_, rule) && rule_id(rule) == answer_.why.rule)
                note(rule_id(rule), switches.rule[rule].word);
    }

    Answer passes(int verdict) {
        answer_.why.verdict = counter_name(sluice_counter_index(verdict, 0));
        return answer_;
    }

    const Tables& tables_;
    const Inquiry& inquiry_;
    const sluice_service& service_;
    SourceState state_;
    uint32_t dimensions_;
    uint64_t now_ns_;
    Answer answer_;
    double nearest_ = 1;
    int verdict_ = SLUICE_CONTINUE;
};

}  // namespace

bool Answer::is_stricter_than(const Answer& other) const {
    if (severity != other.severity)
        return severity > other.severity;
    if (headroom != other.headroom)
        return headroom < other.headroom;
    // Of those that nobody has drawn from, the one that is empty first.
    const auto left = [](const Answer& answer) {
        return answer.why.bucket ? answer.why.bucket->available
                                 : std::numeric_limits<uint64_t>::max();
    };
    return left(*this) < left(other);
}

Result<Answer> ask_limits(const Tables& tables, const Inquiry& inquiry) {
    return Asking(tables, inquiry).ask();
}

}  // namespace sluice
