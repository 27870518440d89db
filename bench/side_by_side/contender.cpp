#include "contender.h"

#include <utility>

namespace sluice::bench {

namespace {

// Limits of so many sources, at the fill that a gate is made for, and few bans.
GateOptions limiting(uint32_t sets) {
    GateOptions options;
    options.sizes.source_sets = sets;
    options.sizes.ban4_lines = options.sizes.rule_lines = 1U << 12;
    options.sizes.listing = 1U << 12;
    return options;
}

GateOptions for_bans_and_services() {
    GateOptions options;
    options.sizes.services = SLUICE_MAX_SERVICES + 1;
    return options;
}

class Bare : public Contender {
  public:
    explicit Bare(Lane lane) : Contender(std::move(lane)) {}
    [[nodiscard]] bool can(const Setup&) const override { return true; }
    Result<uint64_t> passed() override { return uint64_t{0}; }

  protected:
    Status change(const Setup&) override { return {}; }
};

}  // namespace

Status Contender::apply(const Setup& setup) {
    if (in_force_ == setup)
        return {};
    in_force_.reset();
    if (auto changed = change(setup); !changed)
        return changed.error();
    in_force_ = setup;
    return {};
}

MadeContender make_bare(const BareProgram& programs) {
    auto lane = Lane::make();
    if (!lane)
        return lane.error();
    if (const auto attached = lane->attach(programs.drop()); !attached)
        return attached.error();
    return std::unique_ptr<Contender>(std::make_unique<Bare>(std::move(*lane)));
}

Result<Cast> Cast::make(const BareProgram& programs) {
    Cast cast;
    const auto take = [](std::unique_ptr<Contender>& place, const char* name,
                         MadeContender made) -> Status {
        if (!made)
            return made.error().with_context(name);
        place = std::move(*made);
        return {};
    };
    const auto take_peer = [&](std::unique_ptr<Contender>& place, const char* name,
                               MadeContender made) -> Status {
        if (made || made.error().code != ErrorCode::not_found)
            return take(place, name, std::move(made));
        cast.missing.push_back(std::string(name) + ": " + made.error().message);
        return {};
    };
    for (const auto& taken : {take(cast.bare, "bare", make_bare(programs)),
                              take(cast.gate, "Sluice", make_gate(for_bans_and_services())),
                              take(cast.bytes_gate, "Sluice", make_gate(limiting(1U << 16))),
                              take(cast.all_gate, "Sluice", make_gate(limiting(1U << 17))),
                              take(cast.large_gate, "Sluice", make_gate(limiting(1U << 18))),
                              take(cast.large_bytes_gate, "Sluice", make_gate(limiting(1U << 19))),
                              take_peer(cast.xdp_filter, "xdp-filter", make_xdp_filter()),
                              take_peer(cast.nftables, "nftables", make_nftables()),
                              take_peer(cast.hashlimit, "hashlimit", make_hashlimit()),
                              take_peer(cast.ipset, "ipset", make_ipset())})
        if (!taken)
            return taken.error();
    return cast;
}

}  // namespace sluice::bench
