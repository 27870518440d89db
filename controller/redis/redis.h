// Redis as the controller sees it: one server, a master behind sentinels, or a cluster.
//
// For one thread, which may wait: every call ends within connect_timeout + command_timeout,
// whatever the servers do. Connections are made when they are needed, with log-in and a check of
// the role each time.
//
// Beside what the commands need, the user in Redis needs +role +info +time +wait (+select with a
// database in the url, +cluster|slots +asking in a cluster); +client|setname gives the connections
// a name.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "redis/breaker.h"
#include "redis/command.h"
#include "redis/reply.h"

namespace sluice::redis {

class Topology;

struct Options {
    // redis://HOST[:PORT][/DB], rediss:// (TLS), unix:///PATH, redis+sentinel://A,B,C/NAME[/DB],
    // redis+cluster://A,B,C; and rediss+sentinel://, rediss+cluster:// with TLS.
    std::string url;
    std::string username;       // needs a password
    std::string password_file;  // read at each connect, so that a new password needs no restart
    std::string ca_file;        // TLS: whom to trust; empty: whom the system trusts
    std::string cert_file;      // TLS: this side's certificate, with key_file
    std::string key_file;
    std::chrono::milliseconds connect_timeout{250};  // reach, log in, check the role: together
    std::chrono::milliseconds command_timeout{
        100};  // one exchange, from its first byte to its last
};

// The state of the breaker, and what the last connect found out. Of a cluster it is the node that
// is worst off.
struct Health {
    BreakerState state = BreakerState::closed;
    std::string reason;                               // why it is not closed
    std::chrono::steady_clock::time_point since{};    // of the state
    std::chrono::steady_clock::time_point last_ok{};  // the last answer; zero: none yet
    std::string server;                               // its address; empty: none yet
    std::string run_id;                               // of its process
    // Redis's clock less this host's, as of the last connect, with half its round trip as error.
    std::chrono::microseconds server_time_offset{};
    // From the first byte of an exchange to the last of its answer, over the last dozen or so;
    // zero: none yet.
    std::chrono::microseconds round_trip{};
};

}  // namespace sluice::redis

namespace sluice {

class Redis {
  public:
    // Connects to nobody yet. ErrorCode::usage where the options contradict each other;
    // unreadable certificates are errors too.
    static Result<Redis> open(redis::Options options);
    Redis(Redis&& other) noexcept;
    Redis& operator=(Redis&& other) noexcept;
    ~Redis();

    // All commands in one round trip (of a cluster: one for each of its servers), and the replies
    // in their order. A script that the server lacks, or a key that has moved, takes another round:
    // commands behind it may be executed before it. What Redis refuses is a reply too; in a cluster
    // so is "UNREACHABLE …" for a command whose server can't be reached while others can. An error
    // means that there are no replies; the commands may have been executed all the same, or some of
    // them.
    Result<std::vector<redis::Reply>> run(std::span<const redis::Command> commands);
    // The same for writes that must outlive a failover: they count where half of the replicas of
    // their server, rounded up, have them within half of command_timeout. Where fewer do, the
    // replies of that server are "NOREPLICAS …" instead; what it did stays done. A server without
    // replicas is not waited for.
    Result<std::vector<redis::Reply>> run_replicated(std::span<const redis::Command> commands);
    // One command.
    Result<redis::Reply> run(const redis::Command& command);

    [[nodiscard]] redis::Health health() const;

  private:
    Redis(redis::Options options, std::unique_ptr<redis::Topology> topology);

    redis::Options options_;
    std::unique_ptr<redis::Topology> topology_;
};

}  // namespace sluice
