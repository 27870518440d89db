// sluiced's end of the control socket: many clients, none of which can hold up the others.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
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

    // Requests that came, of clients who read their answers.
    [[nodiscard]] bool has_requests() const;
    // One of them: the clients take turns, and between two requests the loop has its own.
    void answer_next();

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
        bool ended = false;  // nothing more comes in; over once all is answered and sent
        uint64_t lost = 0;

        [[nodiscard]] bool has_line() const { return input.find('\n') != std::string::npos; }
        [[nodiscard]] bool is_waiting() const { return output.empty() && has_line(); }
        [[nodiscard]] bool is_over() const { return ended && output.empty() && !has_line(); }
        // Says this, and hears nothing more.
        void refuse(const Error& error);
        // Gone, with whatever was meant for it.
        void drop();
    };

    ControlServer(ControlOptions options, UniqueFd listener, ControlHandler handler)
        : options_(std::move(options)),
          listener_(std::move(listener)),
          handler_(std::move(handler)) {}
    void accept();
    void answer(Client& client, std::string_view line);
    static void read_from(Client& client);
    static void write_to(Client& client);

    ControlOptions options_;
    UniqueFd listener_;
    ControlHandler handler_;
    std::map<int, Client> clients_;  // by descriptor
    int answered_ = -1;              // whose turn it was
};

}  // namespace sluice
