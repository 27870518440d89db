// PinSet: pins under one directory, taken away again unless everything worked.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace sluice {

std::string pin_path(const std::string& pin_dir, std::string_view name);

class PinSet {
  public:
    explicit PinSet(std::string dir) : dir_(std::move(dir)) {}
    PinSet(const PinSet&) = delete;
    PinSet& operator=(const PinSet&) = delete;
    ~PinSet();

    // For root only; it may be there already.
    Status make_dir();
    Status pin(int fd, std::string_view name);
    void keep();

  private:
    std::string dir_;
    bool made_dir_ = false;
    std::vector<std::string> paths_;
};

}  // namespace sluice
