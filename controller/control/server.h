// sluiced's end of the control socket: many clients, none of which can hold up the others.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "control/protocol.h"

namespace sluice {

struct ControlOptions {
    std::string path;
    std::string group;  // may connect, beside root; empty: nobody else
};

// What a request does: its answer as `sluicectl --json` prints it.
using ControlHandler = std::function<ControlJson(const ControlRequest&, const ControlPeer&)>;

class ControlServer {
  public:
    // Takes the socket's place; a stale one, that nobody listens at, is removed first.
    static Result<ControlServer> listen(const ControlOptions& options, ControlHandler handler);
    ControlServer(ControlServer&&) = default;
    ControlServer& operator=(ControlServer&&) = delete;
    ~ControlServer();

    // Adds what to wait for, and takes what came of it.
    void add_polls(std::vector<pollfd>& polls) const;
    void handle(const pollfd& event);

    // One line for every client that follows events; those who cannot keep up lose lines, which
    // are counted.
    void publish(const std::string& line);
    [[nodiscard]] bool has_followers() const;

  private:
    struct Client {
        UniqueFd socket;
        ControlPeer peer;
        std::string input;
        std::string output;
        bool follows = false;
        bool closing = false;  // once the output is gone
        uint64_t lost = 0;
    };

    ControlServer(ControlOptions options, UniqueFd listener, ControlHandler handler)
        : options_(std::move(options)),
          listener_(std::move(listener)),
          handler_(std::move(handler)) {}
    void accept();
    void read_from(Client& client);
    void answer_lines(Client& client);
    static void write_to(Client& client);

    ControlOptions options_;
    UniqueFd listener_;
    ControlHandler handler_;
    std::map<int, Client> clients_;  // by descriptor
};

}  // namespace sluice
