// nftables at the ingress hook of the device: a dynamic set for limits, a static one for bans.
#include <sstream>
#include <utility>

#include "command.h"
#include "contender.h"

namespace sluice::bench {

namespace {

std::string address_type(Family family) {
    return family == Family::ipv4 ? "ipv4_addr" : "ipv6_addr";
}

class Nftables : public Contender {
  public:
    explicit Nftables(Lane lane) : Contender(std::move(lane)) {}

    [[nodiscard]] bool can(const Setup& setup) const override { return setup.services == 1; }

    Result<uint64_t> passed() override {
        const auto text = output_of(lane(), "nft list counter netdev bench passed");
        if (!text)
            return text.error();
        const size_t at = text->find("packets ");
        if (at == std::string::npos)
            return failed("nft prints no counter");
        return std::stoull(text->substr(at + 8));
    }

    Status dump() override { return run(lane(), "nft list set netdev bench banned >/dev/null"); }

  protected:
    Status change(const Setup& setup) override {
        const auto file = MemoryFile::make(ruleset(setup));
        if (!file)
            return file.error();
        return run(lane(), "nft flush ruleset; nft -f " + file->path());
    }

  private:
    static std::string ruleset(const Setup& setup) {
        const std::string source = setup.family == Family::ipv4 ? "ip saddr" : "ip6 saddr";
        std::ostringstream out;
        out << "table netdev bench {\n"
            << "counter passed {\n}\n";
        std::string rule;
        if (setup.bans.count != 0) {
            out << "set banned {\ntype " << address_type(setup.family) << "\n";
            if (setup.bans.networks || setup.bans.for_a_time)
                out << "flags " << (setup.bans.networks ? "interval" : "")
                    << (setup.bans.networks && setup.bans.for_a_time ? "," : "")
                    << (setup.bans.for_a_time ? "timeout" : "") << "\n";
            out << "elements = { ";
            bool first = true;
            for (const Prefix& prefix : banned(setup)) {
                out << (first ? "" : ",") << prefix.to_string();
                if (setup.bans.for_a_time)
                    out << " timeout 1d";
                first = false;
            }
            out << " }\n}\n";
            rule = source + " @banned drop\n";
        }
        if (setup.limit.rate != 0) {
            out << "set sources {\ntype " << address_type(setup.family)
                << "\nsize 1048576\nflags dynamic,timeout\ntimeout 5m\n}\n";
            const std::string port = std::to_string(setup.port);
            rule += (setup.tcp ? "tcp dport " + port + " tcp flags & (syn | ack) == syn"
                               : "udp dport " + port) +
                    " update @sources { " + source + " limit rate over " +
                    std::to_string(setup.limit.rate) +
                    (setup.limit.a_minute ? "/minute" : "/second") + " burst " +
                    std::to_string(setup.limit.burst) + " packets } drop\n";
        }
        out << "chain in {\ntype filter hook ingress device \"edge0\" priority 0; policy accept;\n"
            << rule << "counter name passed" << (setup.let_pass ? "" : " drop") << "\n}\n}\n";
        return out.str();
    }
};

}  // namespace

MadeContender make_nftables() {
    if (!is_installed("nft"))
        return make_error(ErrorCode::not_found, "not installed (Debian: nftables)");
    auto lane = Lane::make();
    if (!lane)
        return lane.error();
    return std::unique_ptr<Contender>(std::make_unique<Nftables>(std::move(*lane)));
}

}  // namespace sluice::bench
