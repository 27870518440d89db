// nftables at the ingress hook of the device: a dynamic set for limits, a static one for bans.
#include <endian.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "command.h"
#include "contender.h"

namespace sluice::bench {

namespace {

std::string address_type(Family family) {
    return family == Family::ipv4 ? "ipv4_addr" : "ipv6_addr";
}

// Packets of a named counter in this network namespace. The tool itself would read all sets of the
// table first.
Result<uint64_t> read_counter(std::string_view table, std::string_view name) {
    const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
    std::vector<uint8_t> message(NLMSG_HDRLEN + sizeof(nfgenmsg), 0);
    const auto attribute = [&](uint16_t type, std::string_view value) {
        const nlattr header{static_cast<uint16_t>(NLA_HDRLEN + value.size()), type};
        const auto* bytes = reinterpret_cast<const uint8_t*>(&header);
        message.insert(message.end(), bytes, bytes + sizeof(header));
        message.insert(message.end(), value.begin(), value.end());
        message.resize(NLA_ALIGN(message.size()), 0);
    };
    const auto text = [](std::string_view words) { return std::string(words) + '\0'; };
    attribute(NFTA_OBJ_TABLE, text(table));
    attribute(NFTA_OBJ_NAME, text(name));
    attribute(NFTA_OBJ_TYPE, std::string_view("\0\0\0\1", 4));  // NFT_OBJECT_COUNTER
    nlmsghdr header{};
    header.nlmsg_len = static_cast<uint32_t>(message.size());
    header.nlmsg_type = (NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_GETOBJ;
    header.nlmsg_flags = NLM_F_REQUEST;
    nfgenmsg generic{};
    generic.nfgen_family = NFPROTO_NETDEV;
    std::memcpy(message.data(), &header, sizeof(header));
    std::memcpy(message.data() + NLMSG_HDRLEN, &generic, sizeof(generic));

    std::array<uint8_t, 4096> answer{};
    if (!socket || ::send(socket.get(), message.data(), message.size(), 0) < 0)
        return from_errno(errno, "ask for a counter of nftables");
    const ssize_t got = ::recv(socket.get(), answer.data(), answer.size(), 0);
    if (got < 0)
        return from_errno(errno, "read a counter of nftables");
    std::memcpy(&header, answer.data(), sizeof(header));
    if (header.nlmsg_type == NLMSG_ERROR)
        return failed("nftables has no counter of that name");

    // The value of the attribute of a type among those from `at` to `end`: where it lies.
    using Range = std::pair<size_t, size_t>;
    const auto find = [&](Range all, uint16_t type) -> std::optional<Range> {
        for (size_t at = all.first; at + NLA_HDRLEN <= all.second;) {
            nlattr found{};
            std::memcpy(&found, answer.data() + at, sizeof(found));
            if (found.nla_len < NLA_HDRLEN)
                break;
            if ((found.nla_type & NLA_TYPE_MASK) == type)
                return Range{at + NLA_HDRLEN, at + found.nla_len};
            at += NLA_ALIGN(found.nla_len);
        }
        return {};
    };
    const auto data =
        find({NLMSG_HDRLEN + sizeof(nfgenmsg), static_cast<size_t>(got)}, NFTA_OBJ_DATA);
    const auto packets = data ? find(*data, NFTA_COUNTER_PACKETS) : std::nullopt;
    if (!packets)
        return failed("nftables answers without a counter");
    uint64_t value = 0;
    std::memcpy(&value, answer.data() + packets->first, sizeof(value));
    return be64toh(value);
}

class Nftables : public Contender {
  public:
    explicit Nftables(Lane lane) : Contender(std::move(lane)) {}

    [[nodiscard]] bool can(const Setup& setup) const override { return setup.services == 1; }

    Result<uint64_t> passed() override {
        return lane().network().in_edge([] { return read_counter("bench", "passed"); });
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
