#include "gate/source_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>

#include "gate/policy_store.h"

namespace sluice {

namespace {

constexpr uint64_t kMiddleDither = 1ULL << 63;
// What a packet of bytes counts, where the next one's size matters.
constexpr uint64_t kFullFrame = 1514;

// The weight of a look by the fine clock.
constexpr uint64_t kLookNs = 1'000'000;

uint32_t index_of(Dimension dimension) {
    return static_cast<uint32_t>(dimension);
}

uint64_t clock_ns(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

sluice_address counted(const Tables& tables, const IpAddress& source) {
    const auto& mask = policy_in_force(tables).source_mask[source.family() == Family::ipv6 ? 1 : 0];
    return {source.high64() & mask.high, source.low64() & mask.low};
}

// As 16.16 with zeros where a word has no room; never less than it is.
uint32_t inverse_of(double part) {
    constexpr uint32_t kStep = 1U << SLUICE_PART_SHIFT;
    const double inverse = SLUICE_SCALE_ONE / std::clamp(part, kLeastPart, 1.0);
    return static_cast<uint32_t>(std::ceil(inverse / kStep)) * kStep;
}

}  // namespace

std::optional<Part> read_part(uint64_t word, uint64_t now_ns) {
    const uint64_t now_units = sluice_units(now_ns);
    const uint32_t inverse = sluice_inverse_part(word, now_units);
    if (word == 0 || inverse == SLUICE_SCALE_ONE)
        return std::nullopt;
    const auto ahead = static_cast<uint64_t>(sluice_ahead(word, now_units));
    return Part{static_cast<double>(SLUICE_SCALE_ONE) / inverse,
                std::chrono::nanoseconds(static_cast<int64_t>(ahead << SLUICE_UNIT_SHIFT))};
}

SampleTime sample_time() {
    const uint64_t tick = clock_ns(CLOCK_MONOTONIC_COARSE);
    return {tick, std::max(tick, clock_ns(CLOCK_MONOTONIC))};
}

SourceWords::SourceWords(const Tables& tables, uint64_t source_hash, uint32_t service_id,
                         uint32_t scope) {
    const sluice_slot place = sluice_source_slot(&tables.seed(), source_hash, service_id, scope);
    set_ = &tables.sources[place.set & (tables.sizes.source_sets - 1)];
    tag_ = place.tag;
}

uint64_t SourceWords::find(uint32_t dimension) const {
    for (const __u64& word : set_->word) {
        const uint64_t value = __atomic_load_n(&word, __ATOMIC_RELAXED);
        if (value >> SLUICE_TAT_BITS == sluice_tag(tag_, dimension))
            return value;
    }
    return 0;
}

bool SourceWords::put(uint32_t dimension, uint64_t tat_units, uint64_t now_units) const {
    const uint64_t tag = sluice_tag(tag_, dimension);
    const uint64_t wanted = sluice_word(tag, tat_units);
    const auto replace = [&](auto may_go) {
        return std::any_of(std::begin(set_->word), std::end(set_->word), [&](__u64& word) {
            __u64 old = __atomic_load_n(&word, __ATOMIC_RELAXED);
            return may_go(old) && __atomic_compare_exchange_n(&word, &old, wanted, false,
                                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        });
    };
    return replace([&](uint64_t old) { return old >> SLUICE_TAT_BITS == tag; }) ||
           replace([&](uint64_t old) { return sluice_ahead(old, now_units) <= 0; });
}

SourceParts::SourceParts(const Tables& tables, const IpAddress& source, uint32_t service_id)
    : tables_(&tables),
      service_id_(service_id),
      words_(tables, sluice_address_hash(&tables.seed(), counted(tables, source)), service_id,
             SLUICE_PER_SOURCE) {}

bool SourceParts::put(Dimension dimension, double part, uint64_t until_ns) const {
    const uint64_t now_ns = gate_now_ns(*tables_);
    // The next packet clears a set that nobody visited for so long.
    if (now_ns > words_.touched_ns() && now_ns - words_.touched_ns() >= SLUICE_SET_STALE_NS)
        return false;
    const uint64_t word = sluice_part_word(0, sluice_units(until_ns), inverse_of(part));
    return words_.put(SLUICE_PART(index_of(dimension)), word, sluice_units(now_ns));
}

void SourceParts::drop(Dimension dimension) const {
    const uint64_t now_units = sluice_units(gate_now_ns(*tables_));
    if (words_.find(SLUICE_PART(index_of(dimension))) != 0)
        (void)words_.put(SLUICE_PART(index_of(dimension)), now_units - 1, now_units);
}

std::optional<Part> SourceParts::find(Dimension dimension) const {
    return read_part(words_.find(SLUICE_PART(index_of(dimension))), gate_now_ns(*tables_));
}

UseSample SourceParts::use(Dimension dimension, uint8_t source_class,
                           const SampleTime& time) const {
    const sluice_limit& limit = service_in_force(*tables_, service_id_).source[index_of(dimension)];
    const uint64_t word = words_.find(index_of(dimension));
    // By the fine clock a look is worth as much as any other; by the coarse one it tells of the
    // tick so far.
    const uint64_t since = limit.exact != 0 ? time.now_ns : time.tick_ns;
    const uint64_t looked = limit.exact != 0 ? kLookNs : time.now_ns - time.tick_ns;
    UseSample sample{.looked_ns = static_cast<double>(looked)};
    if (word == 0 || limit.span == 0)
        return sample;

    const uint32_t part = sluice_inverse_part(words_.find(SLUICE_PART(index_of(dimension))),
                                              sluice_units(time.now_ns));
    const uint32_t own = policy_in_force(*tables_).inverse_scale[source_class];
    const uint32_t scale = own == 0 ? part : sluice_both_scales(own, part);
    const uint64_t units = dimension == Dimension::bytes ? kFullFrame : 1;
    const uint64_t cost = sluice_cost(&limit, units, scale, kMiddleDither);
    const uint64_t owed = sluice_owed(word, sluice_units(since), limit.span, cost);
    const uint64_t owed_ns = owed << SLUICE_UNIT_SHIFT;
    sample.busy_ns = static_cast<double>(limit.exact != 0 ? (owed != 0 ? looked : 0)
                                                          : std::min(owed_ns, looked));
    sample.is_full = sluice_admits(owed, limit.span, cost) == 0;
    return sample;
}

IpAddress counted_source(const Tables& tables, const IpAddress& source) {
    const sluice_address network = counted(tables, source);
    std::array<uint8_t, 16> bytes{};
    for (size_t i = 0; i < 8; ++i) {
        bytes[i] = static_cast<uint8_t>(network.high >> (56 - 8 * i));
        bytes[8 + i] = static_cast<uint8_t>(network.low >> (56 - 8 * i));
    }
    return IpAddress::from_bytes(bytes);
}

void heed_parts(const Tables& tables, bool any) {
    __atomic_store_n(&tables.settings().parts, static_cast<__u16>(any ? 1 : 0), __ATOMIC_RELEASE);
}

bool are_parts_heeded(const Tables& tables) {
    return __atomic_load_n(&tables.settings().parts, __ATOMIC_ACQUIRE) != 0;
}

}  // namespace sluice
