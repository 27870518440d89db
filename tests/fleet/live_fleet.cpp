#include "live_fleet.h"

#include <algorithm>
#include <filesystem>

#include "fleet/lease_message.h"
#include "gate/budgets.h"
#include "gate/policy_store.h"
#include "gate/service_ids.h"
#include "policy/parse.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr const char* kFleet = "live";
constexpr const char* kWeb = "web";

// As in the daemon, but finer, so that a test need not wait long.
constexpr auto kStep = 5ms;
constexpr auto kLook = 1ms;

// Of lease.lua's `clock`: last call, end of learning, longest lease, length of the run id.
constexpr const char* kEndLearning =
    "local clock = redis.call('HGET', KEYS[1], 'clock') "
    "local last, learned, most = struct.unpack('<ddd', clock) "
    "redis.call('HSET', KEYS[1], 'clock', struct.pack('<ddd', last, last, most) .. "
    "string.sub(clock, 25)) return 1";

}  // namespace

LiveHost::LiveHost(std::string pin_dir, const std::string& policy, const std::string& source)
    : pin_dir_(std::move(pin_dir)), tables_(Tables::create(pin_dir_, small_sizes()).value()) {
    apply(policy, source);
    service_id_ = find_service_id(tables_, kWeb).value();
}

LiveHost::~LiveHost() {
    kill();
    std::error_code ignored;
    std::filesystem::remove_all(pin_dir_, ignored);
}

void LiveHost::apply(const std::string& policy, const std::string& source) {
    const auto parsed = parse_policy(policy, "test");
    ASSERT_TRUE(parsed) << parsed.error().message;
    const auto version = install_policy(tables_, *parsed, policy, source);
    ASSERT_TRUE(version) << version.error().message;
}

void LiveHost::start() {
    sync_ = std::make_unique<BudgetSync>(pin_dir_, drill_);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void LiveHost::kill() {
    thread_.request_stop();
    if (thread_.joinable())
        thread_.join();
}

void LiveHost::run(const std::stop_token& stop) {
    double owed = 0;
    auto before = Clock::now();
    while (!stop.stop_requested()) {
        const auto now = Clock::now();
        owed += demand_ * std::chrono::duration<double>(now - before).count();
        before = now;
        const auto units = static_cast<uint64_t>(owed);
        owed -= static_cast<double>(units);
        __atomic_fetch_add(
            &tables_.budgets[service_id_].demand[static_cast<size_t>(Dimension::data)], units,
            __ATOMIC_RELAXED);
        sync_->step();
        const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - now);
        longest_step_ = std::max(longest_step_.load(), took);
        std::this_thread::sleep_for(kStep);
    }
}

LiveHost::InForce LiveHost::in_force() const {
    const uint64_t now_ns = gate_now_ns(tables_);
    const auto share = read_share(tables_, service_id_, Dimension::data);
    return {budget_allowance(tables_, service_id_, Dimension::data, now_ns).per_second,
            share && now_ns < share->until_ns};
}

void LiveFleet::SetUp() {
    RedisTest::SetUp();
    if (IsSkipped())
        return;
    if (const std::string why = bpf_obstacle(); !why.empty())
        GTEST_SKIP() << why;
    watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

void LiveFleet::TearDown() {
    watcher_ = {};
    hosts_.clear();
}

std::string LiveFleet::policy(const std::string& url, double budget, const std::string& settings) {
    return "mode = \"enforce\"\n[[service]]\nname = \"" + std::string(kWeb) +
           "\"\nmatch = [\"udp/9\"]\nbudget = { data = { rate = \"" +
           std::to_string(static_cast<uint64_t>(budget)) +
           "/s\", burst = 600 }, on_redis_loss = \"safe\" }\n[redis]\nurl = \"" + url + "\"\n" +
           settings + "\n[fleet]\nname = \"" + kFleet +
           "\"\nmax_hosts = " + std::to_string(kMaxHosts) + "\n";
}

std::string LiveFleet::state_key() {
    return LeaseKeys(kFleet, lease_shard(kWeb)).state;
}

void LiveFleet::add_hosts(unsigned hosts, const std::string& policy) {
    for (unsigned i = 0; i < hosts; i++) {
        auto host = std::make_unique<LiveHost>(next_pin_dir(), policy);
        host->start();
        add(std::move(host));
    }
}

void LiveFleet::add(std::unique_ptr<LiveHost> host) {
    const std::lock_guard guard(mutex_);
    hosts_.push_back(std::move(host));
}

void LiveFleet::end_learning(const lab::RedisServer& server) {
    ASSERT_TRUE(lab::eventually([&] {
        return lab::number(server.ask({"EVAL", kEndLearning, "1", state_key()})) == 1;
    }));
}

void LiveFleet::settle(const lab::RedisServer& server) {
    ASSERT_TRUE(lab::eventually([&] { return all_leased(); })) << hosts_[0]->standing().error;
    end_learning(server);
    ask_for_more_than_there_is();
    // It is used up, and by whom it is asked for.
    ASSERT_TRUE(lab::eventually([&] { return leased_now() > 0.97; })) << leased_now();
    (void)worst();
}

void LiveFleet::ask_for_more_than_there_is() {
    hosts_[0]->set_demand(0.8 * kBudget);
    for (size_t i = 1; i < hosts_.size(); i++)
        hosts_[i]->set_demand(0.3 * kBudget);
}

bool LiveFleet::all_leased() const {
    return std::ranges::all_of(hosts_, [](const auto& host) { return host->in_force().is_leased; });
}

bool LiveFleet::none_leased() const {
    return std::ranges::none_of(hosts_,
                                [](const auto& host) { return host->in_force().is_leased; });
}

bool LiveFleet::all_say(const std::string& words) const {
    return std::ranges::all_of(hosts_, [&](const auto& host) {
        return host->standing().error.find(words) != std::string::npos;
    });
}

double LiveFleet::leased_now() const {
    double sum = 0;
    for (const auto& host : hosts_)
        if (const auto now = host->in_force(); now.is_leased)
            sum += now.per_second;
    return sum / kBudget;
}

Worst LiveFleet::worst() {
    const std::lock_guard guard(mutex_);
    return std::exchange(worst_, {});
}

void LiveFleet::watch(const std::stop_token& stop) {
    // Hosts are looked at one after the other. What is the same in two rounds was in force at one
    // moment, that between them; other rounds say nothing.
    std::vector<LiveHost::InForce> before, now;
    while (!stop.stop_requested()) {
        {
            const std::lock_guard guard(mutex_);
            now.clear();
            for (const auto& host : hosts_)
                now.push_back(host->in_force());
            if (now == before) {
                Worst sum;
                for (const auto& in_force : now) {
                    sum.all += in_force.per_second / kBudget;
                    sum.leased += in_force.is_leased ? in_force.per_second / kBudget : 0;
                }
                worst_.all = std::max(worst_.all, sum.all);
                worst_.leased = std::max(worst_.leased, sum.leased);
            }
        }
        std::swap(before, now);
        std::this_thread::sleep_for(kLook);
    }
}

}  // namespace sluice
