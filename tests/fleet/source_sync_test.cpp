// Heavy sources on hosts that share one real Redis, in real time. Packets are what the test writes
// into the words of the gate, as the packet path does.
#include "fleet/source_sync.h"

#include <filesystem>
#include <map>
#include <random>

#include "../gate/test_gate.h"
#include "gate/policy_store.h"
#include "gate/service_ids.h"
#include "policy/parse.h"
#include "redis_test.h"

namespace sluice {
namespace {

using lab::RedisServer;
using testing::HasSubstr;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr double kLimit = 50;
constexpr uint64_t kSecond = 1'000'000'000;

IpAddress address(std::string_view text) {
    return IpAddress::parse(text).value();
}

class Host {
  public:
    Host(const std::string& url, LeasePool pool)
        : tables_(Tables::create(pin_dir_, small_sizes()).value()), redis_(connection(url)) {
        const std::string text =
            "[[service]]\nname = \"web\"\nmatch = [\"tcp/443\"]\n"
            "per_source = { data = { rate = \"50/s\", burst = 15 } }\n"
            "[redis]\nurl = \"" +
            url + "\"\n[fleet]\nname = \"test\"\n";
        policy_ = parse_policy(text, "test").value();
        EXPECT_TRUE(install_policy(tables_, policy_, text, "test"));
        for (sluice_source_set& set : tables_.sources.span())
            set.touched = gate_now_ns(tables_);
        service_id_ = find_service_id(tables_, "web").value();
        follow(pool);
    }
    ~Host() {
        std::error_code ignored;
        std::filesystem::remove_all(pin_dir_, ignored);
    }
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

    void follow(LeasePool pool) { sync_.follow(tables_, policy_, pool); }
    // From now on so many limits of packets, at random times.
    void send(std::string_view source, double limits) {
        Sender& sender = senders_[address(source)];
        sender.per_second = limits * kLimit;
        sender.next_ns = gate_now_ns(tables_);
    }
    void stop(std::string_view source) { senders_.erase(address(source)); }
    void step() {
        const SampleTime time = sample_time();
        for (auto& [source, sender] : senders_) {
            sync_.saw(source, service_id_);
            for (; sender.next_ns <= time.now_ns; sender.next_ns += gap(sender))
                passed_ += passes(source, sender.next_ns) ? 1 : 0;
        }
        sync_.look(tables_, time);
        sync_.exchange(tables_, redis_, drill_, time.now_ns);
    }

    [[nodiscard]] std::optional<Part> part(std::string_view source) const {
        return SourceParts(tables_, address(source), service_id_).find(Dimension::data);
    }

    std::string pin_dir_ = next_pin_dir();
    Tables tables_;
    Policy policy_;
    Redis redis_;
    RedisDrill drill_;
    SourceSync sync_;
    uint32_t service_id_ = 0;
    uint64_t passed_ = 0;

  private:
    static Redis connection(const std::string& url) {
        redis::Options options;
        options.url = url;
        return Redis::open(options).value();
    }

    struct Sender {
        double per_second = 0;
        uint64_t next_ns = 0;
    };
    uint64_t gap(const Sender& sender) {
        std::exponential_distribution<double> gap(sender.per_second);
        return static_cast<uint64_t>(gap(random_) * kSecond) + 1;
    }
    bool passes(const IpAddress& source, uint64_t at_ns) {
        const SourceWords words(
            tables_, sluice_address_hash(&tables_.seed(), {source.high64(), source.low64()}),
            service_id_, SLUICE_PER_SOURCE);
        const sluice_limit& limit = service_in_force(tables_, service_id_).source[SLUICE_DATA];
        const uint64_t now = sluice_units(at_ns);
        const uint32_t inverse =
            are_parts_heeded(tables_)
                ? sluice_inverse_part(words.find(SLUICE_PART(SLUICE_DATA)), now)
                : SLUICE_SCALE_ONE;
        const uint64_t cost = sluice_cost(&limit, 1, inverse, 0);
        const uint64_t owed = sluice_owed(words.find(SLUICE_DATA), now, limit.span, cost);
        return sluice_admits(owed, limit.span, cost) != 0 &&
               words.put(SLUICE_DATA, now + owed + cost, now);
    }

    std::map<IpAddress, Sender> senders_;
    std::mt19937 random_{20'261'201};
};

class SourcesOfAFleet : public lab::RedisTest {
  protected:
    void SetUp() override {
        RedisTest::SetUp();
        if (IsSkipped())
            return;
        if (const std::string why = bpf_obstacle(); !why.empty())
            GTEST_SKIP() << why;
        server_ = std::make_unique<RedisServer>();
    }
    void add(unsigned hosts, LeasePool pool = LeasePool::enforce) {
        for (unsigned i = 0; i < hosts; ++i)
            hosts_.push_back(std::make_unique<Host>(server_->url(), pool));
    }
    // What all hosts together let through, in limits.
    double pass(std::chrono::milliseconds time) {
        uint64_t before = 0, after = 0;
        for (const auto& host : hosts_)
            before += host->passed_;
        const auto begin = steady_clock::now();
        while (steady_clock::now() - begin < time)
            step();
        const double seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
        for (const auto& host : hosts_)
            after += host->passed_;
        return static_cast<double>(after - before) / seconds / kLimit;
    }
    bool soon(const std::function<bool()>& holds) {
        const auto end = steady_clock::now() + 20s;
        for (; steady_clock::now() < end; step())
            if (holds())
                return true;
        return false;
    }
    size_t stored() {
        const auto keys = server_->ask({"KEYS", "sluice:{test:src:*"}).as_array();
        return keys ? keys->size() : 0;
    }

    std::unique_ptr<RedisServer> server_;
    std::vector<std::unique_ptr<Host>> hosts_;

  private:
    void step() {
        for (const auto& host : hosts_)
            host->step();
        std::this_thread::sleep_for(std::chrono::microseconds(8000 + random_() % 15000));
    }
    std::minstd_rand random_;
};

constexpr std::string_view kSource = "192.0.2.1";

TEST_F(SourcesOfAFleet, HaveOneLimitOnAllHostsTogether) {
    add(3);
    for (const auto& host : hosts_)
        host->send(kSource, 0.8);
    EXPECT_GT(pass(800ms), 1.2) << "nobody knows yet";
    (void)pass(5s);
    const double passed = pass(6s);
    EXPECT_LE(passed, 1.1);
    EXPECT_GE(passed, 0.75);
    double parts = 0;
    for (const auto& host : hosts_) {
        ASSERT_TRUE(host->part(kSource));
        parts += host->part(kSource)->part;
        const SourcesStanding& standing = host->sync_.standing();
        EXPECT_EQ(standing.shared, 1U);
        ASSERT_EQ(standing.heaviest.size(), 1U);
        EXPECT_EQ(standing.heaviest[0].source, address(kSource));
        EXPECT_EQ(standing.heaviest[0].hosts, 3U);
        EXPECT_GE(standing.heaviest[0].limits, 1.4);
    }
    EXPECT_NEAR(parts, 1, 0.3);
}

TEST_F(SourcesOfAFleet, HaveTheirPartsWhereTheySend) {
    add(2);
    hosts_[0]->send(kSource, 8);
    hosts_[1]->send(kSource, 0.8);
    (void)pass(6s);
    const double passed = pass(6s);
    EXPECT_LE(passed, 1.1);
    EXPECT_GE(passed, 0.75);
    ASSERT_TRUE(hosts_[0]->part(kSource));
    ASSERT_TRUE(hosts_[1]->part(kSource));
    EXPECT_GT(hosts_[0]->part(kSource)->part, 2 * hosts_[1]->part(kSource)->part);
}

TEST_F(SourcesOfAFleet, AreLeftAloneBelowHalfOfALimitOrOnOneHost) {
    add(2);
    for (const auto& host : hosts_)
        host->send(kSource, 0.25);
    hosts_[0]->send("192.0.2.7", 0.8);
    EXPECT_NEAR(pass(6s), 1.3, 0.2);
    EXPECT_FALSE(hosts_[0]->part(kSource));
    EXPECT_FALSE(hosts_[0]->part("192.0.2.7"));
    EXPECT_LE(hosts_[0]->sync_.standing().told, 1U);
    EXPECT_EQ(hosts_[1]->sync_.standing().told, 0U);
    EXPECT_FALSE(are_parts_heeded(hosts_[0]->tables_));
}

TEST_F(SourcesOfAFleet, AreFreeAgainOnceTheyAreLightAndNothingIsLeft) {
    add(2);
    for (const auto& host : hosts_)
        host->send(kSource, 0.9);
    ASSERT_TRUE(soon([&] { return hosts_[0]->part(kSource) && hosts_[1]->part(kSource); }));
    EXPECT_GE(stored(), 1U);
    hosts_[1]->stop(kSource);
    ASSERT_TRUE(soon([&] { return !hosts_[0]->part(kSource); }));
    (void)pass(4s);
    EXPECT_GE(pass(4s), 0.7) << "all of it here";
    hosts_[0]->stop(kSource);
    EXPECT_TRUE(soon([&] { return stored() == 0; }));
    EXPECT_TRUE(soon([&] { return hosts_[0]->sync_.standing().watched == 0; }));
    EXPECT_FALSE(are_parts_heeded(hosts_[0]->tables_));
}

TEST_F(SourcesOfAFleet, HaveTheirWholeLimitsTwoSecondsAfterRedisHasGone) {
    add(2);
    for (const auto& host : hosts_)
        host->send(kSource, 0.9);
    ASSERT_TRUE(soon([&] { return hosts_[0]->part(kSource) && hosts_[1]->part(kSource); }));
    server_->kill();
    (void)pass(2500ms);
    EXPECT_FALSE(hosts_[0]->part(kSource));
    EXPECT_FALSE(hosts_[1]->part(kSource));
    EXPECT_GE(pass(3s), 1.4);
    EXPECT_FALSE(hosts_[0]->sync_.standing().error.empty());
    EXPECT_GE(hosts_[0]->sync_.standing().lost, 1U);
    EXPECT_EQ(hosts_[0]->sync_.standing().shared, 0U);
}

TEST_F(SourcesOfAFleet, DoNotCountWhereTheyAreOnlyObserved) {
    add(1);
    add(1, LeasePool::observe);
    for (const auto& host : hosts_)
        host->send(kSource, 0.8);
    (void)pass(5s);
    EXPECT_FALSE(hosts_[0]->part(kSource));
    EXPECT_EQ(hosts_[0]->sync_.standing().told, 1U);
    EXPECT_EQ(hosts_[1]->sync_.standing().told, 1U);
    hosts_[1]->follow(LeasePool::enforce);
    EXPECT_TRUE(soon([&] { return hosts_[0]->part(kSource).has_value(); }));
}

TEST_F(SourcesOfAFleet, AreWatchedUpToANumberAndTheHeavyOnesStay) {
    add(1);
    Host& host = *hosts_[0];
    host.send(kSource, 0.9);
    (void)pass(1500ms);
    uint32_t next = 0;
    for (int round = 0; round < 100; ++round) {
        for (int i = 0; i < 30; ++i)
            host.sync_.saw(IpAddress::from_ipv4(0x0a000000U + next++), host.service_id_);
        (void)pass(20ms);
        EXPECT_LE(host.sync_.standing().watched, SourceSync::kMostWatched);
    }
    EXPECT_EQ(host.sync_.standing().told, 1U);
}

TEST_F(SourcesOfAFleet, WithoutALimitOfTheirServiceAreNotWatched) {
    add(1);
    hosts_[0]->sync_.saw(address(kSource), SLUICE_SERVICE_OTHER);
    (void)pass(100ms);
    EXPECT_EQ(hosts_[0]->sync_.standing().watched, 0U);
}

}  // namespace
}  // namespace sluice
