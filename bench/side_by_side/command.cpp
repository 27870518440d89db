#include "command.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace sluice::bench {

namespace {

// Tools of administrators, which a user's search path may lack.
constexpr const char* kPath = "export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; ";

}  // namespace

bool is_installed(const std::string& program) {
    return std::system((kPath + ("command -v " + program) + " >/dev/null 2>&1").c_str()) == 0;
}

Result<std::string> output_of(const Lane& lane, const std::string& commands) {
    return lane.network().in_edge([&]() -> Result<std::string> {
        FILE* pipe = ::popen((kPath + ("{ " + commands) + "\n} 2>&1").c_str(), "r");
        if (pipe == nullptr)
            return from_errno(errno, "start a shell");
        std::string text;
        std::array<char, 4096> chunk{};
        while (const size_t got = std::fread(chunk.data(), 1, chunk.size(), pipe))
            text.append(chunk.data(), got);
        if (::pclose(pipe) != 0)
            return failed("'" + commands.substr(0, 200) + "' failed: " + text.substr(0, 500));
        return text;
    });
}

Status run(const Lane& lane, const std::string& commands) {
    if (auto output = output_of(lane, commands); !output)
        return output.error();
    return {};
}

Result<MemoryFile> MemoryFile::make(const std::string& text) {
    UniqueFd fd(::memfd_create("sluice-bench", MFD_CLOEXEC));
    if (!fd)
        return from_errno(errno, "make a file in memory");
    for (size_t done = 0; done < text.size();) {
        const ssize_t wrote = ::write(fd.get(), text.data() + done, text.size() - done);
        if (wrote < 0)
            return from_errno(errno, "write a file in memory");
        done += static_cast<size_t>(wrote);
    }
    return MemoryFile(std::move(fd));
}

std::string MemoryFile::path() const {
    return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd_.get());
}

}  // namespace sluice::bench
