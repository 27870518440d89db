#include "guarded_edge.h"

#include <bpf/libbpf.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "gate/counters.h"
#include "gate/policy_store.h"
#include "policy/parse.h"

namespace sluice::lab {

namespace {

constexpr uint32_t kBpfFsMagic = 0xcafe4a11;

// Why no lab is possible here; empty where it is.
std::string obstacle() {
    if (::geteuid() != 0)
        return "needs root";
    struct statfs info {};
    if (::statfs("/sys/fs/bpf", &info) != 0 || static_cast<uint32_t>(info.f_type) != kBpfFsMagic)
        return "no BPF file system on /sys/fs/bpf: mount -t bpf bpf /sys/fs/bpf";
    return {};
}

TableSizes sizes() {
    TableSizes sizes;
    sizes.source_sets = 1U << 12;
    sizes.services = 64;
    sizes.ban4_lines = 1U << 12;
    sizes.rule_lines = 1U << 12;
    sizes.listing = 1U << 12;
    while (sizes.cpus < static_cast<uint32_t>(libbpf_num_possible_cpus()))
        sizes.cpus *= 2;
    return sizes;
}

}  // namespace

// --- floods ------------------------------------------------------------------------------------

void Floods::start(const FloodPlan& plan) {
    Outcome& outcome = reports_[threads_.size()];
    threads_.emplace_back([this, plan, &outcome] {
        network_->in_world([&] {
            auto flood = Flood::make(plan);
            if (!flood) {
                outcome.error = flood.error().message;
                return;
            }
            outcome.begun = std::chrono::steady_clock::now();
            const auto report = flood->run(stop_);
            outcome.ended = std::chrono::steady_clock::now();
            if (report)
                outcome.sent = report->sent;
            else
                outcome.error = report.error().message;
        });
    });
}

void Floods::stop() {
    stop_ = true;
    wait();
}

void Floods::wait() {
    for (std::thread& thread : threads_)
        if (thread.joinable())
            thread.join();
    for (const Outcome& outcome : reports_)
        EXPECT_EQ(outcome.error, "");
}

uint64_t Floods::sent() const {
    uint64_t sum = 0;
    for (const Outcome& outcome : reports_)
        sum += outcome.sent;
    return sum;
}

double Floods::seconds() const {
    auto begun = reports_[0].begun, ended = reports_[0].ended;
    for (size_t n = 1; n < threads_.size(); n++) {
        begun = std::min(begun, reports_[n].begun);
        ended = std::max(ended, reports_[n].ended);
    }
    return std::chrono::duration<double>(ended - begun).count();
}

double Floods::seconds_together(size_t count) const {
    auto begun = reports_[0].begun, ended = reports_[0].ended;
    for (size_t n = 1; n < count; n++) {
        begun = std::max(begun, reports_[n].begun);
        ended = std::min(ended, reports_[n].ended);
    }
    return std::chrono::duration<double>(ended - begun).count();
}

// --- the gate ----------------------------------------------------------------------------------

void GuardedEdge::SetUp() {
    if (const auto why = obstacle(); !why.empty())
        GTEST_SKIP() << why;
    // A busy machine must not hold up a flood just when it is measured.
    ::setpriority(PRIO_PROCESS, 0, -15);
    auto network = Network::make();
    ASSERT_TRUE(network) << network.error().message;
    network_.emplace(std::move(*network));
    pin_dir_ = "/sys/fs/bpf/sluice-test-lab-" + std::to_string(::getpid());
    auto tables = Tables::create(pin_dir_, sizes());
    ASSERT_TRUE(tables) << tables.error().message;
    tables_.emplace(std::move(*tables));
}

void GuardedEdge::TearDown() {
    tables_.reset();
    network_.reset();
    std::error_code ignored;
    if (!pin_dir_.empty())
        std::filesystem::remove_all(pin_dir_, ignored);
}

void GuardedEdge::install(const std::string& policy) {
    const std::string text =
        policy.starts_with("mode = ") ? policy : "mode = \"enforce\"\n" + policy;
    const auto parsed = parse_policy(text, "lab.toml");
    ASSERT_TRUE(parsed) << parsed.error().message << "\n" << text;
    const auto installed = install_policy(*tables_, *parsed, text, "lab.toml");
    ASSERT_TRUE(installed) << installed.error().message;
}

Result<Attachment> GuardedEdge::try_attach(const std::string& interface, XdpMode mode) {
    return network_->in_edge([&] {
        return sluice::attach(*tables_, {.interface = interface, .mode = mode, .confirm = {}});
    });
}

Attachment GuardedEdge::attach(XdpMode mode) {
    auto attached = try_attach("edge0", mode);
    EXPECT_TRUE(attached) << attached.error().message;
    return attached ? *attached : Attachment{};
}

FloodPlan GuardedEdge::flood_from(std::string_view source, std::chrono::milliseconds duration) {
    FloodPlan plan;
    plan.device = "world0";
    plan.first_source = IpAddress::parse(source).value();
    plan.destination =
        IpAddress::parse(plan.first_source.family() == Family::ipv4 ? kEdge4 : kEdge6).value();
    plan.duration = duration;
    return plan;
}

uint64_t GuardedEdge::counted(sluice_verdict verdict) const {
    return read_counters(*tables_)[sluice_counter_index(verdict, 0)].packets;
}

uint64_t GuardedEdge::would(sluice_verdict verdict) const {
    return read_counters(*tables_)[sluice_counter_index(verdict, 1)].packets;
}

uint64_t GuardedEdge::counted(sluice_verdict verdict, std::string_view service) const {
    return read_counters(*tables_, {.service = service_id(service),
                                    .interface_slot = {}})[sluice_counter_index(verdict, 0)]
        .packets;
}

uint64_t GuardedEdge::counted_all() const {
    uint64_t all = 0;
    for (const sluice_counter& counter : read_counters(*tables_))
        all += counter.packets;
    return all;
}

uint32_t GuardedEdge::service_id(std::string_view service) const {
    for (uint32_t id = 1; id < tables_->sizes.services; id++)
        if (service == tables_->service_names[id].name)
            return id;
    return SLUICE_SERVICE_OTHER;
}

uint64_t GuardedEdge::demand(std::string_view service, sluice_dimension dimension) const {
    const uint32_t id = service_id(service);
    uint64_t sum = tables_->budgets[id].demand[dimension];
    for (uint32_t cpu = 0; cpu < tables_->sizes.cpus; cpu++)
        sum += tables_->leases[cpu * tables_->sizes.services + id].demand[dimension];
    return sum;
}

}  // namespace sluice::lab
