#include "redis/redis.h"

#include "redis/cluster.h"
#include "redis/exchange.h"
#include "redis/one_server.h"
#include "redis/tls.h"
#include "redis/url.h"

namespace sluice {

namespace redis {
namespace {

// Nobody waits longer for a lease; the thread that waits has other things to do.
constexpr std::chrono::milliseconds kLongestTimeout{60'000};

Error refuse(std::string message, std::string hint) {
    return make_error(ErrorCode::usage, std::move(message), std::move(hint));
}

Status check_timeout(std::string_view name, std::chrono::milliseconds timeout) {
    if (timeout.count() < 1 || timeout > kLongestTimeout)
        return refuse(
            std::string(name) + ": " + std::to_string(timeout.count()) + " ms is out of range",
            "use 1ms to 60s");
    return {};
}

Status check(const Options& options, const Target& target) {
    if (!options.username.empty() && options.password_file.empty())
        return refuse("username: has no password", "name a password_file beside it");
    if (options.cert_file.empty() != options.key_file.empty())
        return refuse("cert_file and key_file: one is of no use without the other", "name both");
    if (!target.tls && !(options.ca_file.empty() && options.cert_file.empty()))
        return refuse("ca_file, cert_file: the url is one without TLS",
                      "use rediss://, rediss+sentinel:// or rediss+cluster://, or leave them out");
    if (const Status fine = check_timeout("connect_timeout", options.connect_timeout); !fine)
        return fine;
    return check_timeout("command_timeout", options.command_timeout);
}

Result<Access> make_access(const Options& options, const Target& target) {
    Access access{.username = options.username,
                  .password_file = options.password_file,
                  .database = target.database,
                  .tls = std::nullopt};
    if (!target.tls)
        return access;
    auto tls = TlsContext::make({options.ca_file, options.cert_file, options.key_file});
    if (!tls)
        return tls.error();
    access.tls = *std::move(tls);
    return access;
}

std::unique_ptr<Topology> make_topology(Target target, Access access) {
    if (target.form == Form::cluster)
        return std::make_unique<Cluster>(std::move(target), std::move(access));
    return std::make_unique<OneServer>(std::move(target), std::move(access));
}

}  // namespace
}  // namespace redis

Redis::Redis(redis::Options options, std::unique_ptr<redis::Topology> topology)
    : options_(std::move(options)), topology_(std::move(topology)) {}
Redis::Redis(Redis&&) noexcept = default;
Redis& Redis::operator=(Redis&&) noexcept = default;
Redis::~Redis() = default;

Result<Redis> Redis::open(redis::Options options) {
    auto target = redis::parse_url(options.url);
    if (!target)
        return target.error();
    if (const Status checked = redis::check(options, *target); !checked)
        return checked.error();
    auto access = redis::make_access(options, *target);
    if (!access)
        return access.error();
    return Redis(std::move(options), redis::make_topology(*std::move(target), *std::move(access)));
}

Result<std::vector<redis::Reply>> Redis::run(std::span<const redis::Command> commands) {
    return redis::Exchange(*topology_, commands, options_, redis::Counts::at_once).run();
}

Result<std::vector<redis::Reply>> Redis::run_replicated(std::span<const redis::Command> commands) {
    return redis::Exchange(*topology_, commands, options_, redis::Counts::once_replicated).run();
}

Result<redis::Reply> Redis::run(const redis::Command& command) {
    auto replies = run(std::span(&command, 1));
    if (!replies)
        return replies.error();
    return std::move(replies->front());
}

redis::Health Redis::health() const {
    return topology_->health();
}

}  // namespace sluice
