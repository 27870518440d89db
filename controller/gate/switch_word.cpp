#include "gate/switch_word.h"

namespace sluice {

SwitchWord SwitchWord::from(uint64_t word) {
    SwitchWord s;
    s.now = word & 15;
    s.after = word >> 4 & 15;
    s.policy = word >> 8 & 15;
    s.origin = static_cast<sluice_origin>(word >> 12 & 3);
    s.waits = (word & SLUICE_SWITCH_CONFIRM) != 0;
    s.after_is_override = (word & SLUICE_SWITCH_AFTER_OVERRIDE) != 0;
    s.deadline = sluice_switch_deadline(word);
    return s;
}

uint64_t SwitchWord::word() const {
    return sluice_switch_make(now, after, policy, origin, waits ? 1 : 0, deadline) |
           (after_is_override ? SLUICE_SWITCH_AFTER_OVERRIDE : 0);
}

SwitchWord SwitchWord::by_policy(uint32_t value) {
    SwitchWord s;
    s.now = s.after = s.policy = value;
    return s;
}

bool SwitchWord::is_expired(uint64_t now_ns) const {
    return deadline != 0 && now_ns >> SLUICE_DEADLINE_SHIFT >= deadline;
}

SwitchWord SwitchWord::settled(uint64_t now_ns) const {
    if (!is_expired(now_ns))
        return *this;
    SwitchWord s = by_policy(after);
    if (after_is_override)
        s.origin = SLUICE_ORIGIN_OPERATOR;
    // Where the policy itself was taken back, so was what it says here.
    if (is_override())
        s.policy = policy;
    return s;
}

SwitchWord SwitchWord::with_policy(uint32_t value, uint64_t now_ns, uint64_t deadline_ns) const {
    SwitchWord s = settled(now_ns);
    if (s.is_override()) {
        s.policy = value;
        if (!s.after_is_override)
            s.after = value;
        return s;
    }
    const uint32_t before = s.now;
    s = by_policy(value);
    if (deadline_ns == 0 || before == value)
        return s;
    s.after = before;
    s.waits = true;
    s.deadline = sluice_deadline_from_ns(deadline_ns);
    return s;
}

SwitchWord SwitchWord::with_override(uint32_t value, uint64_t now_ns, uint64_t deadline_ns,
                                     bool must_confirm) const {
    const SwitchWord before = settled(now_ns);
    SwitchWord s = before;
    s.now = value;
    s.origin = SLUICE_ORIGIN_OPERATOR;
    s.waits = must_confirm;
    s.deadline = deadline_ns == 0 ? 0 : sluice_deadline_from_ns(deadline_ns);
    if (s.deadline == 0) {
        s.after = value;
        s.after_is_override = true;
    } else if (!before.is_override()) {
        s.after = before.policy;
        s.after_is_override = false;
    } else if (before.deadline == 0) {
        s.after = before.now;
        s.after_is_override = before.origin == SLUICE_ORIGIN_OPERATOR;
    }
    return s;
}

SwitchWord SwitchWord::with_fleet(uint32_t value, uint64_t now_ns, uint64_t deadline_ns,
                                  bool beats_operator) const {
    SwitchWord s = settled(now_ns);
    if (s.origin == SLUICE_ORIGIN_OPERATOR && !beats_operator) {
        // What comes after it, unless that is an operator's word as well.
        if (s.deadline != 0 && !s.after_is_override)
            s.after = value;
        return s;
    }
    const uint32_t policy_value = s.policy;
    s = by_policy(policy_value);
    s.now = value;
    s.origin = SLUICE_ORIGIN_FLEET;
    s.deadline = deadline_ns == 0 ? 0 : sluice_deadline_from_ns(deadline_ns);
    s.after = s.deadline == 0 ? value : policy_value;
    return s;
}

SwitchWord SwitchWord::without_fleet(uint64_t now_ns) const {
    SwitchWord s = settled(now_ns);
    if (s.origin == SLUICE_ORIGIN_FLEET)
        return by_policy(s.policy);
    if (s.origin == SLUICE_ORIGIN_OPERATOR && s.deadline != 0 && !s.after_is_override)
        s.after = s.policy;
    return s;
}

SwitchWord SwitchWord::confirmed(uint64_t then_ns) const {
    SwitchWord s = *this;
    s.waits = false;
    s.deadline = then_ns == 0 ? 0 : sluice_deadline_from_ns(then_ns);
    if (s.deadline == 0) {
        s.after = s.now;
        s.after_is_override = s.is_override();
    }
    return s;
}

}  // namespace sluice
