// iptables in the raw table, before connection tracking: hashlimit for limits, ipset for bans.
#include <algorithm>
#include <sstream>
#include <utility>

#include "command.h"
#include "contender.h"

namespace sluice::bench {

namespace {

// More a second hashlimit does not take.
constexpr uint64_t kMostOfHashlimit = 1'000'000;

class Iptables : public Contender {
  public:
    // The second rule counts what the first let through.
    Result<uint64_t> passed() override {
        const auto text = output_of(lane(), tool_ + " -t raw -nvxL PREROUTING | tail -n 1");
        if (!text)
            return text.error();
        return std::stoull(*text);
    }

  protected:
    using Contender::Contender;

    Status install(const Setup& setup, const std::string& match) {
        tool_ = setup.family == Family::ipv4 ? "iptables" : "ip6tables";
        const std::string add = tool_ + " -t raw -A PREROUTING ";
        return run(lane(), add + match + " -j DROP && " + add + "-i edge0 -j " +
                               (setup.let_pass ? "ACCEPT" : "DROP"));
    }
    Status flush() {
        return run(lane(), "iptables -t raw -F PREROUTING; ip6tables -t raw -F PREROUTING");
    }

  private:
    std::string tool_ = "iptables";
};

class Hashlimit : public Iptables {
  public:
    explicit Hashlimit(Lane lane) : Iptables(std::move(lane)) {}

    [[nodiscard]] bool can(const Setup& setup) const override {
        return setup.limit.rate != 0 && setup.services == 1 && !setup.tagged;
    }

  protected:
    Status change(const Setup& setup) override {
        if (const auto flushed = flush(); !flushed)
            return flushed.error();
        const bool unreached = setup.limit.rate == kMoreThanSent;
        const std::string port = std::to_string(setup.port);
        std::ostringstream match;
        match << "-i edge0 " << (setup.tcp ? "-p tcp --syn --dport " : "-p udp --dport ") << port
              << " -m hashlimit --hashlimit-name bench --hashlimit-mode srcip --hashlimit-above "
              << std::min(setup.limit.rate, kMostOfHashlimit)
              << (setup.limit.a_minute ? "/min" : "/sec") << " --hashlimit-burst "
              << (unreached ? kMostOfHashlimit : setup.limit.burst)
              << " --hashlimit-htable-size 1048576 --hashlimit-htable-max 1048576"
              << " --hashlimit-htable-expire 300000";
        return install(setup, match.str());
    }
};

class Ipset : public Iptables {
  public:
    explicit Ipset(Lane lane) : Iptables(std::move(lane)) {}

    [[nodiscard]] bool can(const Setup& setup) const override {
        return setup.bans.count != 0 && setup.limit.rate == 0 && !setup.tagged;
    }

    Status dump() override { return run(lane(), "ipset save banned >/dev/null"); }

  protected:
    Status change(const Setup& setup) override {
        if (const auto flushed = flush(); !flushed)
            return flushed.error();
        std::ostringstream text;
        text << "create banned hash:" << (setup.bans.networks ? "net" : "ip") << " family "
             << (setup.family == Family::ipv4 ? "inet" : "inet6") << " maxelem "
             << std::max(setup.bans.count, 65'536U) << (setup.bans.for_a_time ? " timeout 0" : "")
             << "\n";
        for (const Prefix& prefix : banned(setup))
            text << "add banned " << prefix.to_string()
                 << (setup.bans.for_a_time ? " timeout 86400\n" : "\n");
        const auto file = MemoryFile::make(text.str());
        if (!file)
            return file.error();
        if (const auto loaded = run(lane(), "ipset destroy; ipset restore -file " + file->path());
            !loaded)
            return loaded.error();
        return install(setup, "-i edge0 -m set --match-set banned src");
    }
};

template <class Kind>
MadeContender make_kind(const std::string& program, const std::string& package) {
    for (const std::string& needed : {std::string("iptables"), program})
        if (!is_installed(needed))
            return make_error(ErrorCode::not_found, "not installed (Debian: " + package + ")");
    auto lane = Lane::make();
    if (!lane)
        return lane.error();
    return std::unique_ptr<Contender>(std::make_unique<Kind>(std::move(*lane)));
}

}  // namespace

MadeContender make_hashlimit() {
    return make_kind<Hashlimit>("iptables", "iptables");
}

MadeContender make_ipset() {
    return make_kind<Ipset>("ipset", "iptables and ipset");
}

}  // namespace sluice::bench
