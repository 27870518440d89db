// sluicectl's end of the control socket.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "control/protocol.h"

namespace sluice {

class ControlClient {
  public:
    // ErrorCode::unreachable where nobody listens there; not_permitted where the caller may not.
    static Result<ControlClient> connect(const std::string& path,
                                         std::chrono::milliseconds timeout);

    // The answer as `sluicectl --json` prints it, errors included; an error of its own where the
    // daemon went away or took too long.
    Result<ControlJson> ask(const ControlRequest& request);
    // The next line of an answer that goes on: `events --follow`.
    Result<ControlJson> next();

  private:
    explicit ControlClient(UniqueFd socket) : socket_(std::move(socket)) {}
    Result<std::string> read_line();

    UniqueFd socket_;
    std::string pending_;  // read, but not yet a line
};

}  // namespace sluice
