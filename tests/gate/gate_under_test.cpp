#include "gate_under_test.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <ostream>
#include <span>
#include <utility>

#include "gate/policy_store.h"
#include "gate/publish.h"
#include "gate/switch_word.h"
#include "gate/table_list.h"
#include "policy/parse.h"

namespace sluice {

namespace {

template <class T>
Bytes bytes_of(const FlatTable<T>& table) {
    const auto bytes = std::as_bytes(table.span());
    Bytes copy(bytes.size());
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    return copy;
}

}  // namespace

const Addresses& addresses(Family family) {
    static const Addresses ipv4 = {"192.0.2.10", "192.0.2.77", "198.51.100.10", "203.0.113.1",
                                   "203.0.113.2"};
    static const Addresses ipv6 = {"2001:db8:a:1::10", "2001:db8:a:2::77", "2001:db8:b:1::10",
                                   "2001:db8:c::1", "2001:db8:c::2"};
    return family == Family::ipv4 ? ipv4 : ipv6;
}

std::string family_name(const ::testing::TestParamInfo<Family>& info) {
    return info.param == Family::ipv4 ? "IPv4" : "IPv6";
}

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
    return out << outcome.verdict << " (" << outcome.service << ")";
}

const std::vector<std::string>& counter_names() {
    static const std::vector<std::string> names = {
#define X(name, text) #name,
        SLUICE_PASSES(X) SLUICE_DROPS(X)
#undef X
#define X(name, text) "would_" #name,
            SLUICE_DROPS(X)
#undef X
    };
    return names;
}

// --- life --------------------------------------------------------------------------------------

TableSizes GateUnderTest::usual_sizes() {
    TableSizes sizes;
    sizes.source_sets = 1U << 10;
    sizes.window_sets = 1U << 6;
    sizes.services = 8;
    sizes.interfaces = 1;
    sizes.cpus = 64;
    sizes.ban4_lines = 1U << 10;
    sizes.rule_lines = 1U << 10;
    sizes.listing = 1U << 12;
    return sizes;
}

namespace {

// --- emptied tables ----------------------------------------------------------------------------

void empty_map(const MapShape& shape, UniqueFd& map) {
    if (shape.storage == MapStorage::hash) {
        Bytes key(shape.key_bytes);
        while (bpf_map_get_next_key(map.get(), nullptr, key.data()) == 0)
            ASSERT_EQ(bpf_map_delete_elem(map.get(), key.data()), 0) << shape.name;
    } else if (shape.storage == MapStorage::array) {
        const Bytes nothing(shape.value_bytes);
        for (uint32_t index = 0; index < shape.entries; ++index)
            ASSERT_EQ(bpf_map_update_elem(map.get(), &index, nothing.data(), BPF_ANY), 0)
                << shape.name;
    } else {
        const auto ignore = [](void*, void*, size_t) { return 0; };
        const std::unique_ptr<ring_buffer, decltype(&ring_buffer__free)> ring(
            ring_buffer__new(map.get(), ignore, nullptr, nullptr), &ring_buffer__free);
        ASSERT_TRUE(ring);
        ASSERT_GE(ring_buffer__consume(ring.get()), 0);
    }
}

template <class T>
void empty_map(const MapShape&, FlatTable<T>& table) {
    const auto span = table.span();
    std::memset(static_cast<void*>(span.data()), 0, span.size_bytes());
}

void empty_all(Tables& tables, const sluice_gate& as_made) {
    const Status emptied = visit_tables(tables, tables.sizes, [](const MapShape& shape, auto& map) {
        empty_map(shape, map);
        return ::testing::Test::HasFatalFailure() ? Status(failed("see above")) : Status{};
    });
    ASSERT_TRUE(emptied);
    tables.settings() = as_made;
}

bool same(const TableSizes& a, const TableSizes& b) {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
}

}  // namespace

// What one test leaves to the next.
struct GateUnderTest::Kept {
    uint32_t largest_frame;
    sluice_gate as_made;
    std::string pin_dir;
    Tables tables;
    Program program;
    std::optional<Program> general;

    ~Kept() {
        std::error_code ignored;
        if (!pin_dir.empty())
            std::filesystem::remove_all(pin_dir, ignored);
    }
};

std::unique_ptr<GateUnderTest::Kept>& GateUnderTest::kept() {
    static std::unique_ptr<Kept> kept;
    return kept;
}

void GateUnderTest::SetUp() {
    GateTest::SetUp();
    if (!IsSkipped())
        start(usual_sizes());
}

void GateUnderTest::TearDown() {
    rules_.reset();
    if (tables_ && program_ && !HasFailure()) {
        kept().reset();
        kept().reset(new Kept{largest_frame_, as_made_, std::exchange(pin_dir_, {}),
                              std::move(*tables_), std::move(*program_), std::move(general_)});
    }
    program_.reset();
    general_.reset();
    GateTest::TearDown();
}

bool GateUnderTest::is_made_for(const TableSizes& sizes, uint32_t largest_frame) const {
    return tables_ && program_ && same(tables_->sizes, sizes) && largest_frame_ == largest_frame;
}

void GateUnderTest::start(const TableSizes& sizes, uint32_t largest_frame) {
    goes_general_way_ = false;
    rules_.reset();
    if (!tables_ && kept() && same(kept()->tables.sizes, sizes) &&
        kept()->largest_frame == largest_frame) {
        as_made_ = kept()->as_made;
        largest_frame_ = largest_frame;
        pin_dir_ = std::exchange(kept()->pin_dir, {});
        tables_.emplace(std::move(kept()->tables));
        program_.emplace(std::move(kept()->program));
        general_ = std::move(kept()->general);
        kept().reset();
    }
    if (is_made_for(sizes, largest_frame))
        empty_all(*tables_, as_made_);
    else
        make(sizes, largest_frame);
    if (HasFatalFailure())
        return;
    set_clock(kStart);
    rules_.emplace(*tables_);
    tables_->settings().attached[0] = 1;
    publish(tables_->settings().mode, SwitchWord::by_policy(SLUICE_MODE_ENFORCE).word());
}

void GateUnderTest::make(const TableSizes& sizes, uint32_t largest_frame) {
    program_.reset();
    general_.reset();
    make_tables(sizes);
    if (HasFatalFailure())
        return;
    as_made_ = tables_->settings();
    largest_frame_ = largest_frame;
    const auto kernel = probe_kernel();
    ASSERT_TRUE(kernel) << kernel.error().message;
    auto program =
        Program::load(*tables_, *kernel, {.settable_clock = true, .largest_frame = largest_frame});
    ASSERT_TRUE(program) << program.error().message;
    program_.emplace(std::move(*program));
}

void GateUnderTest::go_general_way(bool general) {
    if (general && !general_) {
        const auto kernel = probe_kernel();
        ASSERT_TRUE(kernel) << kernel.error().message;
        auto program =
            Program::load(*tables_, *kernel, {.settable_clock = true, .plain_path = false});
        ASSERT_TRUE(program) << program.error().message;
        general_.emplace(std::move(*program));
    }
    goes_general_way_ = general;
}

void GateUnderTest::install(std::string_view toml, const std::optional<nanoseconds>& confirm) {
    std::string text(toml);
    if (!text.starts_with("mode = "))
        text = "mode = \"enforce\"\n" + text;
    const auto policy = parse_policy(text, "test.toml");
    ASSERT_TRUE(policy) << policy.error().message << "\n" << text;
    const auto version = install_policy(*tables_, *policy, text, "test.toml", {.confirm = confirm});
    ASSERT_TRUE(version) << version.error().message;
}

void GateUnderTest::install_web(std::string_view lines) {
    install("[[service]]\nname = \"web\"\nmatch = [\"tcp/443\", \"udp/443\"]\n" +
            std::string(lines));
}

// --- packets -----------------------------------------------------------------------------------

uint32_t GateUnderTest::run(const Bytes& frame, unsigned times) {
    LIBBPF_OPTS(bpf_test_run_opts, options);
    options.data_in = frame.data();
    options.data_size_in = static_cast<uint32_t>(frame.size());
    options.repeat = static_cast<int>(times);
    const Program& program = goes_general_way_ ? *general_ : *program_;
    const int rc = bpf_prog_test_run_opts(program.fd(), &options);
    EXPECT_EQ(rc, 0) << std::strerror(errno) << ", frame of " << frame.size() << " bytes";
    return options.retval;
}

Outcome GateUnderTest::send(const Bytes& frame) {
    const auto cpu = tables_->settings().test_cpu;
    const size_t services = tables_->sizes.services;
    const auto rows = tables_->counters.span().subspan(cpu * services, services);
    const std::vector<sluice_counters> before(rows.begin(), rows.end());
    Outcome outcome;
    outcome.dropped = run(frame, 1) == kDrop;

    for (uint32_t id = 0; id < services; ++id)
        for (size_t index = 0; index < counter_names().size(); ++index) {
            if (rows[id].by_verdict[index].packets == before[id].by_verdict[index].packets)
                continue;
            EXPECT_EQ(outcome.verdict, "") << "counted twice";
            EXPECT_EQ(rows[id].by_verdict[index].packets, before[id].by_verdict[index].packets + 1);
            EXPECT_EQ(rows[id].by_verdict[index].bytes,
                      before[id].by_verdict[index].bytes + frame.size());
            outcome.verdict = counter_names()[index];
            outcome.service = service_name(id);
        }
    EXPECT_EQ(outcome.dropped, outcome.verdict.starts_with("drop_")) << outcome;
    return outcome;
}

uint64_t GateUnderTest::send_many(const Bytes& frame, unsigned count) {
    const size_t services = tables_->sizes.services;
    const auto rows =
        tables_->counters.span().subspan(tables_->settings().test_cpu * services, services);
    const auto dropped = [&rows] {
        uint64_t sum = 0;
        for (const sluice_counters& row : rows)
            for (int verdict = SLUICE_FIRST_DROP; verdict < SLUICE_VERDICTS; ++verdict)
                sum += row.by_verdict[verdict].packets;
        return sum;
    };
    // The kernel makes ready for repetitions at the price of a few hundred single runs.
    constexpr unsigned kWorthRepeating = 200;
    const uint64_t before = dropped();
    if (count >= kWorthRepeating)
        run(frame, count);
    else
        for (unsigned i = 0; i < count; ++i)
            run(frame, 1);
    return count - (dropped() - before);
}

// --- settings ----------------------------------------------------------------------------------

void GateUnderTest::set_mode(std::string_view target, Mode mode,
                             const std::optional<nanoseconds>& lasts) {
    const auto parsed = parse_switch_target(target);
    ASSERT_TRUE(parsed) << parsed.error().message;
    const auto before = sluice::set_mode(*tables_, *parsed, mode, {.lasts = lasts, .confirm = {}});
    ASSERT_TRUE(before) << before.error().message;
}

void GateUnderTest::ban(std::string_view prefix, const Ttl& ttl, bool forced) {
    const auto done = rules().ban(Prefix::parse(prefix).value(), {.ttl = ttl, .forced = forced});
    EXPECT_TRUE(done) << done.error().message;
}

void GateUnderTest::allow(std::string_view prefix, bool exempt) {
    const auto done = rules().allow(Prefix::parse(prefix).value(), {.exempt = exempt});
    EXPECT_TRUE(done) << done.error().message;
}

void GateUnderTest::protect(std::string_view prefix) {
    const auto done = rules().protect(Prefix::parse(prefix).value(), {});
    EXPECT_TRUE(done) << done.error().message;
}

void GateUnderTest::classify(std::string_view prefix, uint8_t source_class) {
    const auto done =
        rules().classify(Prefix::parse(prefix).value(), {.source_class = source_class});
    EXPECT_TRUE(done) << done.error().message;
}

// --- what there is -----------------------------------------------------------------------------

State GateUnderTest::state() const {
    State state{
        bytes_of(tables_->sources), {}, bytes_of(tables_->budgets), bytes_of(tables_->leases)};
    for (uint32_t set = 0; set < tables_->sizes.window_sets; ++set) {
        Bytes one(sizeof(sluice_window_set));
        EXPECT_EQ(bpf_map_lookup_elem(tables_->windows.get(), &set, one.data()), 0);
        state.windows = std::move(state.windows) + one;
    }
    return state;
}

Counts GateUnderTest::counts() const {
    Counts counts;
    for (const sluice_counters& row : tables_->counters.span())
        for (size_t index = 0; index < counter_names().size(); ++index)
            if (row.by_verdict[index].packets != 0)
                counts[counter_names()[index]] += row.by_verdict[index].packets;
    return counts;
}

uint64_t GateUnderTest::counted(const std::string& verdict) const {
    const auto all = counts();
    const auto found = all.find(verdict);
    return found == all.end() ? 0 : found->second;
}

uint64_t GateUnderTest::housekeeping(__u64 sluice_cpu::*member) const {
    uint64_t sum = 0;
    for (const sluice_cpu& cpu : tables_->cpus.span())
        sum += cpu.*member;
    return sum;
}

std::string GateUnderTest::service_name(uint32_t id) const {
    return id == SLUICE_SERVICE_OTHER ? "other" : tables_->service_names[id].name;
}

uint32_t GateUnderTest::service_id(std::string_view service) const {
    for (uint32_t id = 1; id < tables_->sizes.services; ++id)
        if (service_name(id) == service && tables_->service_names[id].removed_ns == 0)
            return id;
    EXPECT_EQ(service, "other") << "no such service";
    return SLUICE_SERVICE_OTHER;
}

}  // namespace sluice
