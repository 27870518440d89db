// A stream socket, TCP or Unix, on which nothing takes longer than its deadline.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "redis/deadline.h"
#include "redis/url.h"

namespace sluice::redis {

class Socket {
  public:
    // Each address of a name is tried, in order. ErrorCode::unreachable where none answers.
    static Result<Socket> connect(const Endpoint& endpoint, Deadline deadline);

    Status send(std::string_view bytes, Deadline deadline);
    // What is there, at least one byte; 0 where nothing came in time. With a deadline that is over
    // it takes what is there already. An error where the other side closed.
    Result<size_t> receive(std::span<char> room, Deadline deadline);

  private:
    explicit Socket(UniqueFd fd) : fd_(std::move(fd)) {}

    UniqueFd fd_;
};

}  // namespace sluice::redis
