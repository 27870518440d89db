// Commands of others, at the edge of a lane; files that need no name on a disk.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "lane.h"

namespace sluice::bench {

bool is_installed(const std::string& program);
// What shell commands print there; an error with it where the last one fails.
Result<std::string> output_of(const Lane& lane, const std::string& commands);
Status run(const Lane& lane, const std::string& commands);

// Text as a file that commands can read and that ends with the process.
class MemoryFile {
  public:
    static Result<MemoryFile> make(const std::string& text);
    [[nodiscard]] std::string path() const;

  private:
    explicit MemoryFile(UniqueFd fd) : fd_(std::move(fd)) {}
    UniqueFd fd_;
};

}  // namespace sluice::bench
