#include "policy/compile.h"

#include <sluice/event.h>
#include <sluice/hash.h>

#include <algorithm>
#include <cmath>

#include "base/quantities.h"
#include "policy/rule_id.h"

namespace sluice {

namespace {

constexpr std::string_view kOther = "other";
constexpr unsigned kIpv4Start = 96;  // of 128 bits

static_assert(static_cast<int>(Mode::off) == SLUICE_MODE_OFF);
static_assert(static_cast<int>(Mode::observe) == SLUICE_MODE_OBSERVE);
static_assert(static_cast<int>(Mode::enforce) == SLUICE_MODE_ENFORCE);
static_assert(static_cast<int>(Scope::budget) == SLUICE_BUDGET);
static_assert(static_cast<int>(Dimension::bytes) == SLUICE_BYTES);

Error refuse(std::string what, std::string mend) {
    return make_error(ErrorCode::usage, std::move(what), std::move(mend));
}

uint8_t bit(Dimension dimension) {
    return static_cast<uint8_t>(1u << static_cast<unsigned>(dimension));
}

// The mask of a prefix length; `length` counts in 128 bits.
template <class Mask>
void set_mask(Mask& mask, unsigned length) {
    mask.high = sluice_mask64(std::min(length, 64u));
    mask.low = length > 64 ? sluice_mask64(length - 64) : 0;
}

template <class Mask>
Status set_masks(Mask (&masks)[2], unsigned ipv4, unsigned ipv6, std::string_view what) {
    if (ipv4 > 32 || ipv6 > 128)
        return refuse(std::string(what) + ": a prefix is longer than its addresses",
                      "use at most 32 for IPv4 and 128 for IPv6");
    set_mask(masks[0], kIpv4Start + ipv4);
    set_mask(masks[1], ipv6);
    return {};
}

Status set_scales(const std::vector<SourceClass>& classes, sluice_policy& shared) {
    constexpr double kMost = SLUICE_MAX_SCALE;
    if (classes.size() > SLUICE_MAX_CLASSES)
        return refuse("the policy has " + std::to_string(classes.size()) + " classes",
                      "use at most " + std::to_string(SLUICE_MAX_CLASSES));
    std::fill(std::begin(shared.inverse_scale), std::end(shared.inverse_scale), SLUICE_SCALE_ONE);
    for (size_t index = 0; index < classes.size(); ++index) {
        const double scale = classes[index].scale;
        if (!(scale >= 1 / kMost && scale <= kMost))
            return refuse("class \"" + classes[index].name +
                              "\": scale = " + std::to_string(scale) + " is out of range",
                          "use 0.015625 (1/64) to 64");
        // Rounded up, so that no class gets more than its scale; a hair less for what is whole but
        // for the division.
        shared.inverse_scale[index + 1] =
            static_cast<uint32_t>(std::ceil(SLUICE_SCALE_ONE / scale - 1e-6));
    }
    return {};
}

// A CPU earns this much each tick in two accounts, one for any event and one for first ones.
uint64_t event_tokens_per_tick(double per_second, const HostFacts& host) {
    constexpr double kNanosecondsPerSecond = 1e9;
    const double share = per_second * SLUICE_EVENT_COST / (2.0 * std::max(host.cpus, 1u));
    return static_cast<uint64_t>(std::ceil(share * host.clock.tick_ns / kNanosecondsPerSecond));
}

// Whether answers to connections that this host opened can land in a service: they go to ephemeral
// ports, never to the one port of a server, which is spared the look-ups then.
bool may_get_replies(const Service& service) {
    return service.matches.empty() || std::ranges::any_of(service.matches, [](const Match& match) {
               return !match.ports || match.ports->first != match.ports->second;
           });
}

class ServiceCompiler {
  public:
    ServiceCompiler(const ClockFacts& clock, ScaleRange scales, unsigned max_hosts)
        : clock_(clock), scales_(scales), max_hosts_(std::max(max_hosts, 1U)) {}

    Result<sluice_service> compile(const Service& service, uint32_t id) const {
        sluice_service compiled = empty(id);
        compiled.flags = static_cast<uint8_t>(
            (service.reply_exempt && may_get_replies(service) ? SLUICE_SERVICE_REPLY_EXEMPT : 0) |
            (service.jail && service.jail->spoofable ? SLUICE_SERVICE_SPOOFABLE : 0));
        for (const Status& status :
             {set_masks(compiled.prefix_mask, service.prefix_ipv4, service.prefix_ipv6,
                        "per_prefix"),
              set_jail(service, compiled), set_limits(service, Scope::per_source, compiled),
              set_limits(service, Scope::per_prefix, compiled), set_budgets(service, compiled)})
            if (!status)
                return status.error().with_context("service \"" + service.name + '"');
        return compiled;
    }

    static sluice_service empty(uint32_t id) {
        sluice_service compiled{};
        compiled.id = id;
        compiled.flags = SLUICE_SERVICE_REPLY_EXEMPT;
        return compiled;
    }

  private:
    static Status set_jail(const Service& service, sluice_service& compiled) {
        if (!service.jail)
            return {};
        const auto duration = service.jail->duration.count();
        if (duration <= 0 || static_cast<uint64_t>(duration) > SLUICE_MAX_SPAN_NS)
            return refuse("jail = " + format_duration(service.jail->duration) + " is out of range",
                          "use a time above 0 and up to \"2d\"");
        compiled.jail_ns = static_cast<uint64_t>(duration);
        return {};
    }

    Status set_limits(const Service& service, Scope scope, sluice_service& compiled) const {
        const bool is_source = scope == Scope::per_source;
        for (const auto& [dimension, limit] : is_source ? service.per_source : service.per_prefix) {
            const std::string rule = format_rule({scope, dimension});
            if (const auto* window = std::get_if<StrictWindow>(&limit)) {
                if (!is_source || dimension != Dimension::connections)
                    return refuse(rule + ": only per_source.connections can be a window",
                                  "use a rate and a burst");
                const auto compiled_window = compile_window(*window, clock_, scales_);
                if (!compiled_window)
                    return compiled_window.error().with_context(rule);
                compiled.window = *compiled_window;
                continue;
            }
            const auto bucket =
                compile_limit(std::get<TokenBucket>(limit), dimension, clock_, scales_);
            if (!bucket)
                return bucket.error().with_context(rule);
            const auto index = static_cast<size_t>(dimension);
            (is_source ? compiled.source : compiled.prefix)[index] = *bucket;
            (is_source ? compiled.source_limits : compiled.prefix_limits) |= bit(dimension);
        }
        return {};
    }

    Status set_budgets(const Service& service, sluice_service& compiled) const {
        for (const auto& [dimension, bucket] : service.budget) {
            const auto index = static_cast<size_t>(dimension);
            // Also of one that the fleet shares: its whole must be a limit as well.
            auto budget = compile_budget(bucket, dimension, clock_);
            if (budget && service.shared)
                budget = compile_unshared(service, dimension, bucket);
            if (!budget)
                return budget.error().with_context(format_rule({Scope::budget, dimension}));
            compiled.budget[index] = *budget;
            compiled.budget_limits |= bit(dimension);
            if (service.shared)
                compiled.flags |= static_cast<uint8_t>(SLUICE_SERVICE_SHARED(index));
        }
        return {};
    }

    // What a host has that never heard of the fleet.
    [[nodiscard]] Result<sluice_budget_limit> compile_unshared(const Service& service,
                                                               Dimension dimension,
                                                               const TokenBucket& whole) const {
        return service.on_redis_loss == OnRedisLoss::open
                   ? counted_only()
                   : compile_budget(share_of(whole, dimension, max_hosts_), dimension, clock_);
    }

    ClockFacts clock_;
    ScaleRange scales_;
    unsigned max_hosts_;
};

Status set_services(const Policy& policy, const ServiceIds& ids, const HostFacts& host,
                    CompiledPolicy& compiled) {
    const ServiceCompiler compiler(host.clock, scale_range(policy.classes), policy.fleet.max_hosts);
    compiled.services.push_back(ServiceCompiler::empty(SLUICE_SERVICE_OTHER));
    for (const Service& service : policy.services) {
        const auto id = ids.find(service.name);
        if (id == ids.end())
            return failed("service \"" + service.name + "\" has no id");
        auto one = compiler.compile(service, id->second);
        if (!one)
            return one.error();
        if (service.name == kOther)
            compiled.services.front() = *one;
        else
            compiled.services.push_back(*one);
    }
    return {};
}

void set_destination_lengths(const ServiceTable& table, sluice_policy& shared) {
    shared.port_classes = table.classes;
    shared.destination_lengths = static_cast<uint32_t>(table.lengths.size());
    std::copy(table.lengths.begin(), table.lengths.end(), shared.destination_length);
}

}  // namespace

Result<CompiledPolicy> compile(const Policy& policy, const ServiceIds& ids, const HostFacts& host) {
    CompiledPolicy compiled;
    sluice_policy& shared = compiled.shared;
    if (const Status status = set_masks(shared.source_mask, policy.sources.ipv4_prefix,
                                        policy.sources.ipv6_prefix, "sources");
        !status)
        return status.error();
    if (const Status status = set_scales(policy.classes, shared); !status)
        return status.error();
    if (const Status status = set_services(policy, ids, host, compiled); !status)
        return status.error();
    auto table = compile_services(policy.services, ids);
    if (!table)
        return table.error();
    compiled.table = *std::move(table);
    set_destination_lengths(compiled.table, shared);
    shared.share_on_full = policy.sources.on_table_full == TableFull::share ? 1 : 0;
    shared.event_tokens_per_tick = event_tokens_per_tick(policy.events_per_second, host);
    return compiled;
}

std::vector<std::string> service_names(const Policy& policy) {
    std::vector<std::string> names = {std::string(kOther)};
    for (const Service& service : policy.services)
        if (service.name != kOther)
            names.push_back(service.name);
    return names;
}

std::vector<ServiceModes> policy_modes(const Policy& policy) {
    const auto modes_of = [](const Service& service) {
        ServiceModes modes{service.name, to_abi(service.mode.value_or(Mode::enforce)), {}};
        modes.rules.fill(SLUICE_MODE_ENFORCE);
        for (const auto& [rule, mode] : service.modes)
            modes.rules[rule_index(rule)] = to_abi(mode);
        return modes;
    };
    Service other;
    other.name = kOther;
    std::vector<ServiceModes> all = {modes_of(other)};
    for (const Service& service : policy.services) {
        if (service.name == kOther)
            all.front() = modes_of(service);
        else
            all.push_back(modes_of(service));
    }
    return all;
}

}  // namespace sluice
