// Where lines go: a file that is rotated, the journal, or standard output.
#pragma once

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
    [[nodiscard]] uint64_t lost() const { return lost_; }

    static constexpr uint64_t kLargest = 64U << 20;  // what an editor still opens
    static constexpr unsigned kKept = 5;

  private:
    Status open();
    Status rotate();

    std::string path_;
    UniqueFd file_;
    uint64_t size_ = 0;
    uint64_t lost_ = 0;
    bool failing_ = false;
};

// "journal", "stdout" or a path. Problems are told to `complain`, once each time they begin.
std::function<void(const std::string&)> line_sink(const std::string& where,
                                                  std::function<void(const Error&)> complain);

}  // namespace sluice
