#include "server_cluster.h"

#include <gtest/gtest.h>

#include "redis_test.h"

namespace sluice::lab {

namespace {

std::string id(const RedisServer& node) {
    return text(node.ask({"CLUSTER", "MYID"}));
}

}  // namespace

ServerCluster::ServerCluster() {
    make();
}

void ServerCluster::make() {
    std::vector<std::string> create = {"redis-cli", "--cluster", "create"};
    for (size_t i = 0; i < kNodes; i++) {
        nodes_.push_back(std::make_unique<RedisServer>(
            std::vector<std::string>{"cluster-enabled yes", "cluster-node-timeout 2000",
                                     "cluster-require-full-coverage no"}));
        create.push_back(nodes_.back()->address());
    }
    create.insert(create.end(), {"--cluster-replicas", "1", "--cluster-yes"});
    const Status created = run_program(create);
    ASSERT_TRUE(created) << created.error().message;
    for (const auto& node : nodes_)
        ASSERT_TRUE(eventually([&] {
            const std::string info = text(node->ask({"CLUSTER", "INFO"}));
            return info.find("cluster_state:ok") != std::string::npos &&
                   info.find("cluster_known_nodes:6") != std::string::npos;
        }));
}

std::string ServerCluster::url() const {
    return "redis+cluster://" + nodes_[4]->address() + ',' + nodes_[0]->address();
}

RedisServer& ServerCluster::master_of(const std::string& key) {
    for (const auto& node : nodes_)
        if (node->ask({"EXISTS", key}).error_word() != "MOVED")
            return *node;
    ADD_FAILURE() << "nobody has " << key;
    return *nodes_.front();
}

RedisServer& ServerCluster::other_master(const RedisServer& than) {
    for (const auto& node : nodes_)
        if (node.get() != &than &&
            text(node->ask({"INFO", "replication"})).find("role:master") != std::string::npos)
            return *node;
    ADD_FAILURE() << "no other master";
    return *nodes_.front();
}

void ServerCluster::announce_move(const std::string& slot, RedisServer& from, RedisServer& to) {
    EXPECT_EQ(text(to.ask({"CLUSTER", "SETSLOT", slot, "IMPORTING", id(from)})), "OK");
    EXPECT_EQ(text(from.ask({"CLUSTER", "SETSLOT", slot, "MIGRATING", id(to)})), "OK");
}

void ServerCluster::move_key(const std::string& key, RedisServer& from, RedisServer& to) {
    EXPECT_EQ(text(from.ask({"MIGRATE", "127.0.0.1", std::to_string(to.port()), key, "0", "5000"})),
              "OK");
}

void ServerCluster::finish_move(const std::string& slot, RedisServer& from, RedisServer& to) {
    EXPECT_EQ(text(to.ask({"CLUSTER", "SETSLOT", slot, "NODE", id(to)})), "OK");
    EXPECT_EQ(text(from.ask({"CLUSTER", "SETSLOT", slot, "NODE", id(to)})), "OK");
}

}  // namespace sluice::lab
