// Redis as the policy names it: whether it answers, and whether what it keeps is safe there.
#include <cstdlib>
#include <sstream>

#include "doctor/doctor.h"
#include "doctor/redis_look.h"
#include "fleet/budget_sync.h"

namespace sluice {

namespace {

constexpr std::chrono::microseconds kFarAway(3'000);         // another site
constexpr std::chrono::microseconds kWrongClock(1'000'000);  // schedules would be visibly off

uint64_t number_in(const RedisLook& look, const char* field) {
    const auto found = look.info.find(field);
    return found == look.info.end() ? 0 : std::strtoull(found->second.c_str(), nullptr, 10);
}

std::string text_in(const RedisLook& look, const char* field) {
    const auto found = look.info.find(field);
    return found == look.info.end() ? std::string() : found->second;
}

Finding not_looked_at(const Patient& patient) {
    if (!patient.policy || !patient.policy->redis)
        return passed("not used: this host is on its own");
    return skipped("Redis did not answer", "see redis-reach");
}

bool has_info(const Patient& patient) {
    return patient.redis && !patient.redis->error && !patient.redis->info.empty();
}

Finding check_reach(const Patient& patient) {
    if (!patient.redis)
        return not_looked_at(patient);
    if (patient.redis->error)
        return failed_check(patient.redis->error->message,
                            "budgets fall to on_redis_loss, and the fleet's bans do not arrive",
                            patient.redis->error->hint.empty() ? "redis-cli ping, on this host"
                                                               : patient.redis->error->hint);
    const auto micros = patient.redis->health.round_trip;
    const std::string seen =
        patient.redis->health.server + " answers in " + std::to_string(micros.count()) + " µs";
    if (micros > kFarAway)
        return warned(seen, "each lease waits for it: Redis is at another site, or overloaded",
                      "use a Redis in this site, with a [fleet] name of its own");
    return passed(seen);
}

Finding check_tls(const Patient& patient) {
    if (!patient.redis)
        return not_looked_at(patient);
    const std::string& url = patient.policy->redis->url;
    const bool is_local = url.starts_with("unix:") || url.find("//127.") != std::string::npos ||
                          url.find("//localhost") != std::string::npos ||
                          url.find("//[::1]") != std::string::npos;
    if (url.starts_with("rediss") || is_local)
        return passed(is_local ? "on this host" : "by TLS");
    return warned("not encrypted", "whoever is on the way can read the password, and ban anybody",
                  "url = \"rediss://…\" in [redis], with ca_file");
}

// "+hset +zadd ~sluice:*", as ACL SETUSER takes it; in quotes where a shell would expand it.
std::string grants_of(const RedisRights& rights) {
    std::string grants;
    for (const std::string& right : rights.missing)
        grants += ' ' + (right.find('|') == std::string::npos ? right : "'" + right + "'");
    if (!rights.closed.empty())
        grants += " '~sluice:*'";
    return grants;
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words)
        text += (text.empty() ? "" : ", ") + word;
    return text;
}

Finding check_acl(const Patient& patient) {
    if (!patient.redis)
        return not_looked_at(patient);
    const RedisSettings& settings = *patient.policy->redis;
    const auto& rights = patient.redis->rights;
    if (!rights)
        return not_looked_at(patient);
    const std::string user = !rights->user.empty()       ? rights->user
                             : settings.username.empty() ? "default"
                                                         : settings.username;
    if (!rights->missing.empty() || !rights->closed.empty())
        return failed_check(
            user + " may not " +
                (rights->closed.empty() ? "use " + joined(rights->missing)
                 : rights->missing.empty()
                     ? "reach " + joined(rights->closed)
                     : "use " + joined(rights->missing) + ", nor reach " + joined(rights->closed)),
            "leases, bans or the policy of the fleet are refused where they take it",
            "redis-cli ACL SETUSER " + user + grants_of(*rights));
    if (user == "default")
        return warned("logs in as nobody in particular",
                      "the default user may do everything, and so may whoever takes this host",
                      "give it a user of its own: docs/redis-acl.conf");
    if (!rights->too_many.empty())
        return warned(user + " may do more than it has to: " + joined(rights->too_many),
                      "whoever takes this host has these rights in Redis, too",
                      "give it the rights of docs/redis-acl.conf alone");
    return passed("logs in as " + user + ", with the rights that it needs and no others");
}

Finding check_clock(const Patient& patient) {
    if (!has_info(patient))
        return not_looked_at(patient);
    const auto offset = patient.redis->health.server_time_offset;
    const std::string seen = std::to_string(offset.count() / 1'000) + " ms from this host's";
    if (std::chrono::abs(offset) > kWrongClock)
        return warned(seen, "the times in audits and bans disagree; leases do not mind",
                      "timedatectl set-ntp true, here and there");
    return passed(seen);
}

Finding check_eviction(const Patient& patient) {
    if (!has_info(patient))
        return not_looked_at(patient);
    const std::string policy = text_in(*patient.redis, "maxmemory_policy");
    if (number_in(*patient.redis, "maxmemory") != 0 && policy.starts_with("allkeys"))
        return warned("maxmemory-policy " + policy,
                      "Redis may throw bans and leases away when it is full",
                      "redis-cli config set maxmemory-policy noeviction");
    return passed(policy.empty() ? "no limit" : policy);
}

Finding check_memory(const Patient& patient) {
    constexpr double kNearlyFull = 0.9;
    if (!has_info(patient))
        return not_looked_at(patient);
    const uint64_t most = number_in(*patient.redis, "maxmemory");
    const uint64_t used = number_in(*patient.redis, "used_memory");
    const std::string seen = std::to_string(used >> 20) + " MiB used" +
                             (most == 0 ? "" : " of " + std::to_string(most >> 20));
    if (most != 0 && static_cast<double>(used) > kNearlyFull * static_cast<double>(most))
        return warned(seen, "what is full refuses writes: no new leases, no new bans",
                      "redis-cli config set maxmemory " + std::to_string(2 * most));
    return passed(seen);
}

Finding check_role(const Patient& patient) {
    if (!has_info(patient))
        return not_looked_at(patient);
    const std::string role = text_in(*patient.redis, "role");
    if (role == "slave")
        return failed_check(
            patient.redis->health.server + " is a replica",
            "it takes no writes: no leases, no bans",
            "name its master, or its sentinels (redis+sentinel://…), in [redis] url");
    return passed(role.empty() ? "not said" : role);
}

Finding check_replicas(const Patient& patient) {
    if (!has_info(patient))
        return not_looked_at(patient);
    if (number_in(*patient.redis, "connected_slaves") == 0)
        return passed("none");
    // The field is there only where a least number is asked for.
    if (!patient.redis->info.contains("min_slaves_good_slaves"))
        return warned("a master that is cut off from its replicas goes on",
                      "after a failover two masters can each hand out a whole budget",
                      "redis-cli config set min-replicas-to-write 1, and min-replicas-max-lag 1");
    return passed("a master that is cut off from them stops");
}

constexpr HostCheck kChecks[] = {
    {"redis-reach", check_reach},   {"redis-role", check_role},
    {"redis-tls", check_tls},       {"redis-acl", check_acl},
    {"redis-clock", check_clock},   {"redis-eviction", check_eviction},
    {"redis-memory", check_memory}, {"redis-replicas", check_replicas},
};

}  // namespace

RedisLook look_at_redis(const RedisSettings& settings, const std::string& fleet) {
    RedisLook look;
    auto redis = Redis::open(redis_options(settings));
    if (!redis) {
        look.error = redis.error();
        return look;
    }
    const auto reply = redis->run({"INFO"});
    look.health = redis->health();
    if (!reply) {
        look.error = reply.error();
        return look;
    }
    look.rights =
        rights_in_redis(*redis, fleet, settings.url.find("+cluster:") != std::string::npos);
    const auto text = reply->as_text();
    // Who may not ask for it learns less; that is no fault of Redis.
    if (!text)
        return look;
    std::istringstream lines{std::string(*text)};
    for (std::string line; std::getline(lines, line);) {
        const size_t colon = line.find(':');
        if (colon != std::string::npos)
            look.info[line.substr(0, colon)] = line.substr(colon + 1, line.find('\r') - colon - 1);
    }
    return look;
}

std::span<const HostCheck> redis_checks() {
    return kChecks;
}

}  // namespace sluice
