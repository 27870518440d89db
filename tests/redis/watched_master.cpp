#include "watched_master.h"

#include <gtest/gtest.h>

#include "redis_test.h"

namespace sluice::lab {

WatchedMaster::WatchedMaster(const std::vector<std::string>& of_sentinels,
                             const std::vector<std::string>& of_the_master)
    : master_(std::make_unique<RedisServer>(of_the_master)),
      replica_(std::make_unique<RedisServer>(
          std::vector<std::string>{"replicaof 127.0.0.1 " + std::to_string(master_->port())})) {
    for (int i = 0; i < 3; i++) {
        std::vector<std::string> settings = {
            "sentinel monitor shop 127.0.0.1 " + std::to_string(master_->port()) + " 2",
            "sentinel down-after-milliseconds shop 1000", "sentinel failover-timeout shop 10000"};
        settings.insert(settings.end(), of_sentinels.begin(), of_sentinels.end());
        sentinels_.push_back(std::make_unique<RedisServer>(settings, true));
    }
}

void WatchedMaster::wait_until_they_know_each_other() {
    for (const auto& sentinel : sentinels_)
        ASSERT_TRUE(eventually([&] {
            const redis::Reply known = sentinel->ask({"SENTINEL", "REPLICAS", "shop"});
            const auto replicas = known.as_array();
            return text(sentinel->ask({"SENTINEL", "CKQUORUM", "shop"}))
                       .starts_with("OK 3 usable") &&
                   replicas && replicas->size() == 1;
        })) << sentinel->log();
}

bool WatchedMaster::knows_the_new_one(const RedisServer& sentinel) const {
    const redis::Reply answer = sentinel.ask({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "shop"});
    return answer == redis::Reply::array({redis::Reply::text("127.0.0.1"),
                                          redis::Reply::text(std::to_string(replica_->port()))});
}

std::string WatchedMaster::url() const {
    std::string hosts;
    for (const auto& sentinel : sentinels_)
        hosts += (hosts.empty() ? "" : ",") + sentinel->address();
    return "redis+sentinel://" + hosts + "/shop";
}

}  // namespace sluice::lab
