// Where lines go: a file that is rotated, the journal, or standard output.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace sluice {

// A file of lines; at kLargest it is renamed to NAME.1, NAME.1 to NAME.2, and so on.
class LineFile {
  public:
    explicit LineFile(std::string path) : path_(std::move(path)) {}

    // The first failure is returned, later ones only counted, until a write works again.
    Status write(const std::string& line);
    // Of the last write; empty where that worked.
    [[nodiscard]] const std::string& error() const { return error_; }

    static constexpr uint64_t kLargest = 64U << 20;  // what an editor still opens
    static constexpr unsigned kKept = 5;

  private:
    // Whoever rotates it from outside, or removes it, need not tell.
    static constexpr std::chrono::seconds kLookAgain{1};

    Status open();
    Status rotate();
    bool is_still_there();
    Status append(const std::string& line);

    std::string path_;
    UniqueFd file_;
    uint64_t size_ = 0;
    std::chrono::steady_clock::time_point looked_;
    std::string error_;
    bool failing_ = false;
};

struct LineSink {
    std::function<void(const std::string&)> write;
    std::function<std::string()> error;  // what is wrong now; empty where nothing is
};

// "journal", "stdout" or a path. Problems are told to `complain`, once each time they begin.
LineSink line_sink(const std::string& where, std::function<void(const Error&)> complain);

}  // namespace sluice
