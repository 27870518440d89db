#include "base/file.h"

#include <fcntl.h>

#include <array>
#include <cerrno>

#include "base/unique_fd.h"

namespace sluice {

Result<std::string> read_file(const std::string& path) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file)
        return from_errno(errno, "open " + path);
    std::string text;
    std::array<char, 16'384> chunk;
    for (;;) {
        const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
        if (got == 0)
            return text;
        if (got > 0)
            text.append(chunk.data(), static_cast<size_t>(got));
        else if (errno != EINTR)
            return from_errno(errno, "read " + path);
    }
}

}  // namespace sluice
