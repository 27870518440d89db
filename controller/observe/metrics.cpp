#include "observe/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "gate/attachment.h"
#include "gate/counters.h"
#include "gate/policy_store.h"
#include "gate/rule_counter.h"
#include "gate/service_ids.h"
#include "gate/switches.h"
#include "observe/families.h"
#include "operate/gate_access.h"

namespace sluice {

namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

struct Counted {
    std::string interface;
    std::string service;
    Counters counters;
};

std::vector<Counted> count_all(const Tables& tables) {
    std::vector<Counted> all;
    for (uint32_t slot = 0; slot < tables.sizes.interfaces; ++slot) {
        const sluice_interface& interface = tables.interfaces[slot];
        if (interface.name[0] == '\0')
            continue;
        const std::string name(interface.name, ::strnlen(interface.name, sizeof(interface.name)));
        for (const auto& [service, id] : service_ids(tables))
            all.push_back(
                {name, service, read_counters(tables, {.service = id, .interface_slot = slot})});
    }
    return all;
}

void add_traffic(const Tables& tables, Families& out) {
    const auto all = count_all(tables);
    const auto add = [&](const char* name, const char* help, __u64 sluice_counter::*member) {
        out.begin(name, help, MetricType::Counter);
        for (const Counted& counted : all)
            for (uint32_t index = 0; index < counted.counters.size(); ++index)
                if (counted.counters[index].packets != 0)
                    out.add({{"iface", counted.interface},
                             {"service", counted.service},
                             {"verdict", std::string(counter_name(index))}},
                            static_cast<double>(counted.counters[index].*member));
    };
    add("sluice_packets_total", "Packets, by what was decided", &sluice_counter::packets);
    add("sluice_bytes_total", "Bytes of frames with their L2 header, by what was decided",
        &sluice_counter::bytes);
}

// As `status` has it.
bool is_dropping(const Tables& tables) {
    const auto mode = mode_of(tables, WholeGate{});
    const auto all = attachments(tables);
    return mode && *mode == Mode::enforce && all &&
           std::any_of(all->begin(), all->end(), [](const Attachment& a) { return a.acts(); });
}

void add_housekeeping(Tables& tables, RuleCounter& counter, Families& out) {
    const SourceUse use = source_use(tables);
    out.one("sluice_sources_live", "State words that hold somebody back", MetricType::Gauge,
            static_cast<double>(use.live));
    out.one("sluice_sources_capacity", "State words that there is room for", MetricType::Gauge,
            static_cast<double>(use.capacity));
    out.one("sluice_sources_evicted_live_total", "State words lost to newcomers while they counted",
            MetricType::Counter, static_cast<double>(use.evicted_live));
    uint64_t lost = 0;
    for (const sluice_cpu& cpu : tables.cpus.span())
        lost += cpu.events_lost;
    out.one("sluice_events_lost_total", "Events that found the ring buffer full",
            MetricType::Counter, static_cast<double>(lost));
    if (const auto counts = counter.of(tables)) {
        out.begin("sluice_bans",
                  "Banned prefixes: asked for; dropped at present; beaten by an allow or a "
                  "protection",
                  MetricType::Gauge);
        const size_t enforced =
            is_dropping(tables) ? counts->bans_enforced - counts->bans_overruled : 0;
        out.add({{"state", "wanted"}}, static_cast<double>(counts->bans_wanted));
        out.add({{"state", "enforced"}}, static_cast<double>(enforced));
        out.add({{"state", "overruled"}}, static_cast<double>(counts->bans_overruled));
        out.add({{"state", "by_hand"}}, static_cast<double>(counts->bans_by_hand));
        out.begin("sluice_table_use_ratio", "How full a table is, 0 to 1", MetricType::Gauge);
        for (const TableUse& table : counts->tables)
            out.add({{"table", std::string(table.name)}}, table.ratio());
    }
}

void add_standing(const Tables& tables, Families& out) {
    if (const auto mode = mode_of(tables, WholeGate{}))
        out.one("sluice_mode", "0 off, 1 observe, 2 enforce", MetricType::Gauge,
                static_cast<double>(static_cast<int>(*mode)));
    out.one("sluice_policy_version", "Counts the policies of this gate", MetricType::Gauge,
            static_cast<double>(current_policy_version(tables)));
    if (const auto all = attachments(tables)) {
        out.begin("sluice_attached", "1 where the gate is on the interface, 0 where it was lost",
                  MetricType::Gauge);
        for (const Attachment& attachment : *all)
            out.add({{"iface", attachment.interface},
                     {"xdp_mode", attachment.native ? "native" : "generic"}},
                    attachment.lost || attachment.expired ? 0 : 1);
    }
}

class GateMetrics : public prometheus::Collectable {
  public:
    GateMetrics(std::string pin_dir, MoreMetrics more)
        : pin_dir_(std::move(pin_dir)), more_(std::move(more)) {}

    std::vector<MetricFamily> Collect() const override {
        Families out;
        out.begin("sluice_build_info", "The version that runs", MetricType::Gauge);
        out.add({{"version", SLUICE_VERSION}}, 1);
        auto tables = open_gate(pin_dir_);
        out.one("sluice_gate_up", "1 where there is a gate", MetricType::Gauge, tables ? 1 : 0);
        if (tables) {
            add_traffic(*tables, out);
            add_housekeeping(*tables, counter_, out);
            add_standing(*tables, out);
        }
        more_(out);
        return out.take();
    }

  private:
    std::string pin_dir_;
    MoreMetrics more_;
    mutable RuleCounter counter_;  // the exposer has one thread
};

}  // namespace

Result<std::unique_ptr<Metrics>> Metrics::listen(const std::string& address,
                                                 const std::string& pin_dir, MoreMetrics more) {
    std::unique_ptr<Metrics> metrics(new Metrics);
    metrics->source_ = std::make_shared<GateMetrics>(pin_dir, std::move(more));
    try {
        metrics->exposer_ = std::make_unique<prometheus::Exposer>(address, 1);
    } catch (const std::exception&) {
        // The library's words do not say what it could not do.
        return failed("[metrics] listen: cannot listen at " + address,
                      "another program may be there; name another port");
    }
    metrics->exposer_->RegisterCollectable(metrics->source_);
    return metrics;
}

Metrics::~Metrics() = default;

}  // namespace sluice
