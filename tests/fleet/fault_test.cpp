// What goes wrong between hosts and Redis, in real time: what is in force meanwhile stays within
// the bounds of docs/fleet.md, and everything comes back by itself.
#include "../unit/temp_folder.h"
#include "fleet/fleet_view.h"
#include "fleet/policy_budgets.h"
#include "fleet/policy_message.h"
#include "live_fleet.h"
#include "proxy.h"
#include "redis/connection.h"

namespace sluice {
namespace {

using lab::eventually;
using lab::Proxy;
using lab::RedisServer;
using lab::text;
using testing::HasSubstr;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr unsigned kHosts = 3;
// Sums of shares, in double precision.
constexpr double kRounding = 1e-9;
// A lease, and what a busy machine may be late.
constexpr auto kLease = 500ms;
constexpr auto kOneLease = kLease + lab::kLate;
// The breaker's longest pause, a connection and a renewal.
constexpr auto kBackWithin = 3s + lab::kLate;
// The timeouts of [redis] together.
constexpr auto kLongestCall = 350ms;

class Fault : public LiveFleet {
  protected:
    static std::string url(const RedisServer& server) { return "unix://" + server.socket(); }
    // Each host has what it would have alone, and says why.
    void expect_safe(const std::string& why) {
        EXPECT_TRUE(eventually([&] { return none_leased(); }, kOneLease));
        for (const auto& host : hosts_)
            EXPECT_NEAR(host->in_force().per_second, kSafe, 1);
        EXPECT_TRUE(eventually([&] { return all_say(why); }, lab::kLate))
            << hosts_[0]->standing().error;
        expect_bounds();
    }
    // Leases are never more than the budget; who lost his has his safe share beside those.
    void expect_bounds() {
        const Worst seen = worst();
        EXPECT_LE(seen.leased, 1 + kRounding);
        EXPECT_LE(seen.all, 1 + (kHosts - 1.0) / kMaxHosts + kRounding);
    }
    void expect_back() {
        EXPECT_TRUE(eventually([&] { return all_leased(); }, kBackWithin))
            << hosts_[0]->standing().error;
        expect_bounds();
    }
};

TEST_F(Fault, RedisIsKilledAndComesBackEmpty) {
    RedisServer server;
    add_hosts(kHosts, policy(url(server)));
    settle(server);
    server.kill();
    expect_safe("connect");
    server.start();
    expect_back();
    EXPECT_TRUE(hosts_[0]->standing().is_learning);
}

TEST_F(Fault, RedisIsRestartedEmptyWithinALease) {
    RedisServer server;
    add_hosts(kHosts, policy(url(server)));
    settle(server);
    server.kill();
    server.start();
    EXPECT_TRUE(eventually([&] {
        return std::ranges::all_of(hosts_,
                                   [](const auto& host) { return host->standing().is_learning; });
    }));
    std::this_thread::sleep_for(4 * kLease);
    expect_bounds();
}

TEST_F(Fault, RedisStandsStill) {
    RedisServer server;
    add_hosts(kHosts, policy(url(server)));
    settle(server);
    server.pause();
    expect_safe("no answer in time");
    for (const auto& host : hosts_)
        EXPECT_LE(host->longest_step(), kLongestCall + lab::kLate);
    server.resume();
    expect_back();
    EXPECT_TRUE(eventually([&] { return leased_now() > 0.97; })) << "it knew everything";
    expect_bounds();
}

TEST_F(Fault, RedisIsSlowerThanTheTimeout) {
    RedisServer server;
    Proxy proxy(server.port());
    add_hosts(kHosts, policy(proxy.url()));
    settle(server);
    // Calls arrive and are executed, and nobody hears the answer.
    proxy.delay(100ms);
    expect_safe("no answer in time");
    proxy.delay(0ms);
    expect_back();
    EXPECT_TRUE(eventually([&] { return leased_now() > 0.97; }));
    expect_bounds();
}

TEST_F(Fault, RedisIsSlowButInTime) {
    RedisServer server;
    Proxy proxy(server.port());
    add_hosts(kHosts,
              policy(proxy.url(), kBudget, "connect_timeout = \"2s\"\ncommand_timeout = \"1s\"\n"));
    settle(server);
    proxy.delay(100ms);
    std::this_thread::sleep_for(4 * kLease);
    EXPECT_TRUE(eventually([&] { return leased_now() > 0.9; }));
    EXPECT_TRUE(eventually([&] { return hosts_[0]->standing().redis.round_trip > 180ms; }));
    expect_bounds();
}

TEST_F(Fault, TheBudgetFallsToAThird) {
    RedisServer server;
    add_hosts(kHosts, policy(url(server)));
    settle(server);
    const auto begun = Clock::now();
    for (const auto& host : hosts_)
        host->apply(policy(url(server), kBudget / 3));
    EXPECT_TRUE(eventually([&] { return leased_now() <= 1.0 / 3 + kRounding; }, kOneLease));
    EXPECT_LE(worst().leased, 1 + kRounding) << "the old budget";
    EXPECT_TRUE(eventually([&] { return leased_now() > 0.97 / 3; }));
    EXPECT_LE(Clock::now() - begun, 2 * kOneLease);
    (void)worst();
    std::this_thread::sleep_for(2 * kLease);
    EXPECT_LE(worst().leased, 1.0 / 3 + kRounding);
}

TEST_F(Fault, TwoDaemonsHaveOneIdentity) {
    RedisServer server;
    add_hosts(kHosts, policy(url(server)));
    settle(server);
    auto clone = std::make_unique<LiveHost>(next_pin_dir(), policy(url(server)));
    const auto& original = hosts_[1]->tables().settings().host_id;
    std::copy_n(original, 2, clone->tables().settings().host_id);
    clone->set_demand(0.3 * kBudget);
    const std::string id = hosts_[1]->standing().host;
    clone->start();
    add(std::move(clone));
    EXPECT_TRUE(eventually([&] {
        const FleetStanding one = hosts_[1]->standing(), other = hosts_[3]->standing();
        return one.duplicates + other.duplicates > 0 && !other.host.empty() &&
               one.host != other.host;
    }));
    EXPECT_TRUE(hosts_[1]->standing().host == id || hosts_[3]->standing().host == id);
    // For one lease both have what one of them should.
    std::this_thread::sleep_for(2 * kLease);
    EXPECT_LE(worst().leased, 1 + 0.3 * 1.1);
    EXPECT_TRUE(eventually([&] { return all_leased() && leased_now() > 0.97; }));
    std::this_thread::sleep_for(2 * kLease);
    (void)worst();
    std::this_thread::sleep_for(2 * kLease);
    EXPECT_LE(worst().leased, 1 + kRounding);
}

TEST_F(Fault, AReplicaThatHasNotTheWritesMakesThemNotCount) {
    RedisServer server;
    RedisServer replica({"replicaof 127.0.0.1 " + std::to_string(server.port())});
    ASSERT_TRUE(eventually([&] {
        return text(replica.ask({"INFO", "replication"})).find("master_link_status:up") !=
               std::string::npos;
    }));
    add_hosts(kHosts, policy(url(server)));
    settle(server);
    // One that never acknowledged anything is not waited for.
    ASSERT_TRUE(eventually([&] { return redis::replicas_in(server.ask({"ROLE"})) == 1; }));
    replica.pause();
    expect_safe("NOREPLICAS");
    EXPECT_EQ(hosts_[0]->standing().redis.state, redis::BreakerState::closed);
    replica.resume();
    expect_back();
}

TEST_F(Fault, ADrillIsALossOfRedisForOneHostAndEnds) {
    RedisServer server;
    add_hosts(kHosts, policy(url(server)));
    settle(server);
    constexpr auto kDrill = 2s;
    const auto begun = Clock::now();
    hosts_[0]->drill().begin(kDrill);
    EXPECT_TRUE(eventually([&] { return !hosts_[0]->in_force().is_leased; }, kOneLease));
    EXPECT_NEAR(hosts_[0]->in_force().per_second, kSafe, 1);
    EXPECT_TRUE(hosts_[1]->in_force().is_leased && hosts_[2]->in_force().is_leased);
    EXPECT_FALSE(hosts_[0]->standing().is_up());
    EXPECT_TRUE(eventually([&] { return hosts_[0]->in_force().is_leased; }, kDrill + kBackWithin));
    EXPECT_GE(Clock::now() - begun, kDrill);
    EXPECT_TRUE(eventually([&] { return leased_now() > 0.97; }));
    expect_bounds();
}

// --- rights ----------------------------------------------------------------------------------

class Rights : public Fault {
  protected:
    // As docs/ has it.
    static RedisServer guarded() {
        return RedisServer({"include " SLUICE_SOURCE_DIR "/docs/redis-acl.conf"});
    }
    std::string guarded_policy(const RedisServer& server) {
        password_ = server.folder().write("password", "replace-this");
        return policy(url(server), kBudget,
                      "username = \"sluice\"\npassword_file = \"" + password_ + "\"\n");
    }
    static std::optional<FleetView> view(LiveHost& host) {
        std::optional<Result<FleetView>> view;
        EXPECT_TRUE(eventually([&] { return (view = host.sync().view()).has_value(); }));
        EXPECT_TRUE(*view) << view->error().message;
        return *view ? std::optional(**view) : std::nullopt;
    }

    std::string password_;
};

TEST_F(Rights, ThoseOfTheDocumentationSufficeAndAreFew) {
    RedisServer server = guarded();
    RedisServer replica({"replicaof 127.0.0.1 " + std::to_string(server.port())});
    add_hosts(kHosts, guarded_policy(server));
    settle(server);
    ASSERT_TRUE(view(*hosts_[0]));
    EXPECT_TRUE(eventually([&] { return view(*hosts_[0])->hosts.size() == kHosts; }));
    for (const auto& host : hosts_) {
        EXPECT_EQ(host->standing().error, "");
        EXPECT_EQ(host->standing().unlisted, "");
    }
    redis::Options options = patient(url(server));
    options.username = "sluice";
    options.password_file = password_;
    Redis redis = Redis::open(options).value();
    for (const redis::Command& forbidden :
         {redis::Command{"SET", "rl:policy:login", "1"}, redis::Command{"LPUSH", "sluice:x", "1"},
          redis::Command{"CONFIG", "GET", "*"}, redis::Command{"FLUSHALL"},
          redis::Command{"HSET", "other", "a", "b"}})
        EXPECT_THAT(text(redis.run(forbidden)), HasSubstr("NOPERM")) << forbidden.words()[0];
    const std::vector<redis::Command> wait = {{"HSET", "sluice:x", "a", "b"}};
    EXPECT_TRUE(redis.run_replicated(wait).value()[0].check());
}

TEST_F(Rights, OneThatIsTakenAwayIsNoticed) {
    RedisServer server = guarded();
    add_hosts(kHosts, guarded_policy(server));
    settle(server);
    ASSERT_EQ(text(server.ask({"ACL", "SETUSER", "sluice", "-hset"})), "OK");
    // Redis does not say which command of a script it was.
    expect_safe("can't run this command");
    ASSERT_EQ(text(server.ask({"ACL", "SETUSER", "sluice", "+hset"})), "OK");
    expect_back();
}

TEST_F(Rights, APasswordThatIsWrongAfterAReconnectIsNamedAndMended) {
    RedisServer server = guarded();
    add_hosts(kHosts, guarded_policy(server));
    settle(server);
    ASSERT_EQ(text(server.ask({"ACL", "SETUSER", "sluice", "resetpass", ">another"})), "OK");
    ASSERT_EQ(lab::number(server.ask({"CLIENT", "KILL", "USER", "sluice"})), kHosts);
    expect_safe("WRONGPASS");
    (void)server.folder().write("password", "another");
    expect_back();
}

// --- what others write -------------------------------------------------------------------------

TEST_F(Fault, AKeyOfAnotherTypeIsNamedAndLeftAlone) {
    RedisServer server;
    add_hosts(kHosts, policy(url(server)));
    settle(server);
    ASSERT_TRUE(server.ask({"SET", state_key(), "mine"}).check());
    expect_safe("WRONGTYPE");
    EXPECT_EQ(text(server.ask({"GET", state_key()})), "mine");
    ASSERT_TRUE(server.ask({"DEL", state_key()}).check());
    expect_back();
}

TEST_F(Rights, HostileValuesGiveNobodyMore) {
    RedisServer server = guarded();
    add_hosts(kHosts, guarded_policy(server));
    settle(server);
    const std::string nan("\0\0\0\0\0\0\xf8\x7f", 8), huge("\xff\xff\xff\xff\xff\xff\xef\x7f", 8);
    for (const std::string& value : {nan + nan + nan + nan + nan, huge + huge + huge + huge + huge,
                                     std::string("garbage"), std::string(70'000, 'x')})
        for (const char* field : {"enforce", "budgets", "names", "clock"}) {
            ASSERT_TRUE(server.ask({"HSET", state_key(), field, value}).check());
            std::this_thread::sleep_for(kLease / 2);
        }
    const HostKeys keys("live");
    const std::string stranger(32, 'f');
    ASSERT_TRUE(server.ask({"ZADD", keys.seen, "9e15", stranger}).check());
    ASSERT_TRUE(server.ask({"HSET", keys.words, stranger, "name=\x1b[31mroot\nlag_us=-9e99\nmode"})
                    .check());
    expect_back();
    const auto seen = view(*hosts_[0]);
    ASSERT_TRUE(seen);
    const auto strange =
        std::ranges::find(seen->hosts, stranger, [](const HostView& host) { return host.last.id; });
    ASSERT_NE(strange, seen->hosts.end());
    EXPECT_EQ(strange->last.name, "\\x1b[31mroot");
    EXPECT_EQ(strange->last.lag, 0us);
}

// --- what is seen ------------------------------------------------------------------------------

TEST_F(Rights, EveryHostAndItsSharesAreSeen) {
    RedisServer server = guarded();
    const std::string enforcing = guarded_policy(server);
    add_hosts(2, enforcing);
    std::string observing = enforcing;
    observing.replace(observing.find("enforce"), 7, "observe");
    add_hosts(1, observing);
    ASSERT_TRUE(eventually([&] { return all_leased(); }));
    ask_for_more_than_there_is();
    std::optional<FleetView> seen;
    ASSERT_TRUE(eventually([&] {
        seen = view(*hosts_[0]);
        return seen && seen->hosts.size() == kHosts && seen->budgets.size() == 1 &&
               seen->budgets[0].leases.size() == kHosts;
    }));
    EXPECT_EQ(seen->hosts_in_all, kHosts);
    EXPECT_FALSE(seen->is_cut);
    const BudgetView& budget = seen->budgets[0];
    EXPECT_EQ(budget.name, "web.data");
    EXPECT_EQ(budget.per_second, kBudget);
    EXPECT_EQ(std::ranges::count(budget.leases, LeasePool::enforce, &LeaseView::pool), 2);
    std::vector<std::string> modes;
    for (const HostView& host : seen->hosts) {
        modes.push_back(host.last.mode);
        EXPECT_FALSE(host.last.name.empty());
        EXPECT_FALSE(host.last.version.empty());
        EXPECT_EQ(host.last.policy_version, 1U);
        EXPECT_FALSE(host.is_away());
    }
    EXPECT_THAT(modes, testing::UnorderedElementsAre("enforce", "enforce", "observe"));
    for (const LeaseView& lease : budget.leases) {
        EXPECT_LE(lease.granted, kBudget);
        EXPECT_GT(lease.granted, 0);
        EXPECT_LT(lease.age, 10s);
    }
    // A process that is gone stays seen, as silent.
    hosts_[0]->kill();
    EXPECT_TRUE(eventually([&] {
        const auto later = view(*hosts_[1]);
        return later && std::ranges::any_of(later->hosts, &HostView::is_away);
    }));
}

// --- a shard that was lost -----------------------------------------------------------------------

// Hosts of which one has a canary with a budget of its own, and Redis loses what it shares.
class LostShard : public Fault {
  protected:
    void SetUp() override {
        Fault::SetUp();
        if (IsSkipped())
            return;
        server_ = std::make_unique<RedisServer>();
        redis_.emplace(Redis::open(patient(url(*server_))).value());
        push();
        add_host("fleet live, version 1", kBudget);
    }
    void add_host(const std::string& source, double budget) {
        auto host =
            std::make_unique<LiveHost>(next_pin_dir(), policy(url(*server_), budget), source);
        host->start();
        add(std::move(host));
    }
    void push() {
        const auto reply = redis_->run(policy_push_command(
            keys_, {.text = "[[service]]\nname = \"web\"\nmatch = [\"udp/9\"]\nbudget = { data = "
                            "{ rate = \"12000/s\", burst = 600 }, on_redis_loss = \"safe\" }\n",
                    .actor = "alice"}));
        ASSERT_TRUE(reply && reply->check());
        ASSERT_TRUE(write_owed_budgets(*redis_, "live"));
    }
    void lose_shard() {
        ASSERT_TRUE(server_->ask({"DEL", state_key(), state_key() + ":expiry"}).check());
    }
    bool is_owed() {
        const auto reply = redis_->run(policy_pointers_command(keys_));
        return reply && parse_policy_pointers(*reply).value().unwritten_ms != 0;
    }
    // A second, of the whole fleet, as Redis has it; 0: it has none.
    double shared() {
        const auto seen = read_fleet_view(*redis_, "live", {lease_shard("web")});
        return seen && !seen->budgets.empty() ? seen->budgets[0].per_second : 0;
    }

    PolicyKeys keys_{"live"};
    std::unique_ptr<RedisServer> server_;
    std::optional<Redis> redis_;
};

TEST_F(LostShard, IsFilledFromTheFleetsPolicyAndNotFromACanary) {
    add_host("fleet live, version 2, canary", 99'000);
    add_host("fleet live, version 1, changed for a time", 98'000);
    ASSERT_TRUE(eventually([&] { return all_leased(); }));
    EXPECT_EQ(shared(), kBudget);
    lose_shard();
    ASSERT_TRUE(eventually([&] { return is_owed(); })) << "who is responsible hears of it";
    std::this_thread::sleep_for(2 * kLease);
    EXPECT_EQ(shared(), 0) << "nobody wrote numbers of his own";
    ASSERT_TRUE(write_owed_budgets(*redis_, "live"));
    ASSERT_TRUE(eventually([&] { return all_leased(); }));
    EXPECT_EQ(shared(), kBudget);
}

TEST_F(LostShard, OfAHostWithAFileOfItsOwnIsTheFleetsAllTheSame) {
    add_host("own.toml", 97'000);
    ASSERT_TRUE(eventually([&] { return all_leased(); }));
    EXPECT_EQ(shared(), kBudget);
    lose_shard();
    ASSERT_TRUE(eventually([&] { return is_owed(); }));
    ASSERT_TRUE(write_owed_budgets(*redis_, "live"));
    EXPECT_EQ(shared(), kBudget);
    std::this_thread::sleep_for(2 * kLease);
    EXPECT_EQ(shared(), kBudget);
}

// Redis has lost the policy as well: what most hosts have is better than nothing.
TEST_F(LostShard, IsFilledByHostsThatHaveTheCurrentVersionWhereThePolicyIsLostToo) {
    add_host("fleet live, version 2, canary", 99'000);
    ASSERT_TRUE(eventually([&] { return all_leased(); }));
    hosts_[0]->kill();
    ASSERT_TRUE(server_->ask({"FLUSHALL"}).check());
    std::this_thread::sleep_for(4 * kLease);
    EXPECT_EQ(shared(), 0) << "the canary does not";
    hosts_[0]->start();
    ASSERT_TRUE(eventually([&] { return shared() == kBudget; }));
}

}  // namespace
}  // namespace sluice
