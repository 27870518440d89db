// sluiced's end of the control socket: many clients, none of which can hold up the others.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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
    // Now and then: listens again where somebody took the socket's name away. Whether that was so.
    bool look_after_name();

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
        std::chrono::steady_clock::time_point heard = std::chrono::steady_clock::now();

        // Asks nothing, and waits for nothing.
        [[nodiscard]] bool is_idle() const { return !follows && input.empty() && output.empty(); }
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
          name_(inode_of(options_.path)),
          handler_(std::move(handler)) {}
    // Device and inode: whether the name still leads to our socket.
    static std::optional<std::pair<dev_t, ino_t>> inode_of(const std::string& path);
    void accept();
    bool make_room(const ControlPeer& peer);
    void answer(Client& client, std::string_view line);
    static void read_from(Client& client);
    static void write_to(Client& client);

    ControlOptions options_;
    UniqueFd listener_;
    std::optional<std::pair<dev_t, ino_t>> name_;
    ControlHandler handler_;
    std::map<int, Client> clients_;  // by descriptor
    std::chrono::steady_clock::time_point accept_from_{};
    int answered_ = -1;  // whose turn it was
};

}  // namespace sluice
