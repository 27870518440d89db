// A folder of its own for a test, removed with all it contains.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace sluice {

class TempFolder {
  public:
    TempFolder() {
        std::string name = testing::TempDir() + "sluice-XXXXXX";
        if (mkdtemp(name.data()) == nullptr)
            ADD_FAILURE() << "no folder " << name;
        path_ = name;
    }
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;
    ~TempFolder() { std::filesystem::remove_all(path_); }

    [[nodiscard]] std::string path() const { return path_.string(); }

    // Writes a file below the folder, with the folders between; returns its path.
    std::string write(const std::string& name, std::string_view text) const {
        const auto file = path_ / name;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file, std::ios::binary) << text;
        return file.string();
    }

  private:
    std::filesystem::path path_;
};

}  // namespace sluice
