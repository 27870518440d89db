// What a user in Redis may do. ACL DRYRUN would say, and whoever has just the rights that Sluice
// needs may not ask it: so each command is tried. Redis checks rights first, so whatever else it
// answers means that the right is there.
#include <functional>

#include "doctor/redis_look.h"
#include "fleet/feed_message.h"
#include "fleet/heartbeat.h"
#include "fleet/lease_message.h"
#include "fleet/policy_message.h"

namespace sluice {

namespace {

using redis::Command;

constexpr const char* kKey = "KEY";  // stands for one that nobody ever writes

// A command of Sluice's, in a form that changes nothing: it reads, it removes what is not there, or
// it fails for what it is given.
struct Trial {
    std::string right;  // as ACL SETUSER has it, behind the +
    std::vector<std::string> words;
};

const std::vector<Trial>& trials() {
    static const std::vector<Trial> all = {
        {"eval", {"EVAL", "return 1", "1", kKey}},
        {"evalsha", {"EVALSHA", std::string(40, '0'), "1", kKey}},
        {"get", {"GET", kKey}},
        {"getrange", {"GETRANGE", kKey, "0", "0"}},
        {"strlen", {"STRLEN", kKey}},
        {"hget", {"HGET", kKey, "f"}},
        {"hmget", {"HMGET", kKey, "f"}},
        {"hgetall", {"HGETALL", kKey}},
        {"hlen", {"HLEN", kKey}},
        {"zcard", {"ZCARD", kKey}},
        {"zscore", {"ZSCORE", kKey, "m"}},
        {"zrange", {"ZRANGE", kKey, "0", "0"}},
        {"zrevrange", {"ZREVRANGE", kKey, "0", "0"}},
        {"zrangebyscore", {"ZRANGEBYSCORE", kKey, "0", "0"}},
        {"zrangebylex", {"ZRANGEBYLEX", kKey, "-", "+"}},
        {"xread", {"XREAD", "COUNT", "1", "STREAMS", kKey, "0"}},
        {"xrevrange", {"XREVRANGE", kKey, "+", "-", "COUNT", "1"}},
        {"hdel", {"HDEL", kKey, "f"}},
        {"unlink", {"UNLINK", kKey}},
        {"zrem", {"ZREM", kKey, "m"}},
        {"zremrangebyrank", {"ZREMRANGEBYRANK", kKey, "0", "0"}},
        {"set", {"SET", kKey, "v", "NX", "XX"}},      // a contradiction
        {"setrange", {"SETRANGE", kKey, "-1", "v"}},  // before its beginning
        {"hset", {"HSET", kKey, "f", "v", "odd"}},    // a field without a value
        {"hincrby", {"HINCRBY", kKey, "f", "none"}},  // by no number
        {"zadd", {"ZADD", kKey, "none", "m"}},        // the same
        {"xadd", {"XADD", kKey, "0-0", "f", "v"}},    // an id that no entry can have
        {"role", {"ROLE"}},
        {"info", {"INFO", "server"}},
        {"time", {"TIME"}},
        {"wait", {"WAIT", "0", "1"}},
    };
    return all;
}

const std::vector<Trial>& trials_of_clusters() {
    static const std::vector<Trial> all = {{"asking", {"ASKING"}},
                                           {"cluster|slots", {"CLUSTER", "SLOTS"}}};
    return all;
}

Command command_of(const Trial& trial, const std::string& key) {
    Command command{};
    for (const std::string& word : trial.words)
        command.add(word == kKey ? key : word);
    return command;
}

// Redis names a missing command, or says that the keys are the matter.
bool is_refused(const redis::Reply& reply) {
    return reply.error_word() == "NOPERM";
}
bool is_closed(const redis::Reply& reply) {
    return is_refused(reply) && reply.error_text().find(" access ") != std::string_view::npos;
}

// One of each kind: leases, the feed, the audit, heartbeats, the policy.
std::vector<std::string> keys_of(const std::string& fleet) {
    const FeedKeys feed(fleet);
    return {LeaseKeys(fleet, 0).state, feed.meta, feed.audit, HostKeys(fleet).seen,
            PolicyKeys(fleet).base};
}

class Examiner {
  public:
    Examiner(Redis& redis, const std::string& fleet)
        : redis_(redis), own_key_("sluice:{" + fleet + ":doctor}"), keys_(keys_of(fleet)) {}

    std::optional<RedisRights> examine(bool is_cluster) {
        add_all(trials());
        if (is_cluster)
            add_all(trials_of_clusters());
        add_keys();
        add_excess();
        const auto replies = redis_.run(commands_);
        if (!replies || replies->size() != commands_.size())
            return std::nullopt;
        for (size_t i = 0; i < replies->size(); ++i)
            takers_[i]((*replies)[i]);
        return std::move(rights_);
    }

  private:
    using Taker = std::function<void(const redis::Reply&)>;

    void add(Command command, Taker taker) {
        commands_.push_back(std::move(command));
        takers_.push_back(std::move(taker));
    }

    void add_all(const std::vector<Trial>& some) {
        for (const Trial& trial : some)
            add(command_of(trial, own_key_), [this, &trial](const redis::Reply& reply) {
                if (is_refused(reply) && !is_closed(reply))
                    rights_.missing.push_back('+' + trial.right);
            });
    }

    // Reading and writing are rights of their own since Redis 7; of a command that is missing
    // itself nothing is learnt of keys.
    void add_keys() {
        for (const std::string& key : keys_) {
            const Taker take = [this, key](const redis::Reply& reply) {
                if (is_closed(reply) && (rights_.closed.empty() || rights_.closed.back() != key))
                    rights_.closed.push_back(key);
            };
            add({"HGET", key, "f"}, take);
            add({"HSET", key, "f", "v", "odd"}, take);
        }
    }

    void add_excess() {
        add({"GET", "another:" + own_key_}, [this](const redis::Reply& reply) {
            if (!is_refused(reply))
                rights_.too_many.emplace_back("other keys");
        });
        add({"CONFIG", "GET", "maxmemory"}, [this](const redis::Reply& reply) {
            if (!is_refused(reply))
                rights_.too_many.emplace_back("config");
        });
        add({"ACL", "WHOAMI"}, [this](const redis::Reply& reply) {
            if (const auto name = reply.as_text())
                rights_.user = *name;
        });
    }

    Redis& redis_;
    std::string own_key_;
    std::vector<std::string> keys_;
    std::vector<Command> commands_;
    std::vector<Taker> takers_;
    RedisRights rights_;
};

}  // namespace

std::optional<RedisRights> rights_in_redis(Redis& redis, const std::string& fleet,
                                           bool is_cluster) {
    return Examiner(redis, fleet).examine(is_cluster);
}

}  // namespace sluice
