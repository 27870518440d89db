#include "base/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <utility>

namespace sluice {

namespace {

// A command behind a pipe may take its time, a download for example; a pipe that nobody will ever
// write to must not hold its reader for good.
constexpr int kLongestSilence_ms = 60'000;

Status check_kind(const std::string& path, mode_t mode, bool or_a_pipe) {
    if (S_ISREG(mode) || (or_a_pipe && S_ISFIFO(mode)))
        return {};
    const std::string_view kind = S_ISDIR(mode)    ? "a directory"
                                  : S_ISFIFO(mode) ? "a pipe"
                                  : S_ISSOCK(mode) ? "a socket"
                                                   : "a device";
    return failed("read " + path + ": is " + std::string(kind) + ", not a file",
                  or_a_pipe ? "name a regular file or a pipe" : "name a regular file");
}

Status wait_for_input(int file, const std::string& path) {
    pollfd wanted{file, POLLIN, 0};
    const int ready = ::poll(&wanted, 1, kLongestSilence_ms);
    if (ready < 0 && errno != EINTR)
        return from_errno(errno, "read " + path);
    if (ready == 0)
        return failed("read " + path + ": nothing came for " +
                      std::to_string(kLongestSilence_ms / 1000) + " s");
    return {};
}

// Of the kernel's, or of this host's own state: a million bans with their reasons take less.
constexpr size_t kMostOfAFile = size_t{1} << 30;

struct Input {
    UniqueFd file;
    size_t size = 0;  // as far as it is known beforehand
    bool is_pipe = false;
};

Result<Input> open_input(const std::string& path, const InputFile& wanted) {
    // Without O_NONBLOCK opening a pipe that nobody writes to would wait for good.
    UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!file)
        return from_errno(errno, "open " + path,
                          errno == ENOENT ? std::string(wanted.where_from) : std::string());
    struct stat about {};
    if (::fstat(file.get(), &about) != 0)
        return from_errno(errno, "read " + path);
    if (const Status kind = check_kind(path, about.st_mode, wanted.or_a_pipe); !kind)
        return kind.error();
    return Input{std::move(file), static_cast<size_t>(about.st_size), S_ISFIFO(about.st_mode)};
}

// At most `most` bytes and one more, which shows that there are too many.
Result<std::string> read_all(int file, const std::string& path, size_t most, bool is_pipe) {
    std::string text;
    std::array<char, 16'384> chunk;
    while (text.size() <= most) {
        const ssize_t got = ::read(file, chunk.data(), chunk.size());
        if (got == 0)
            return text;
        if (got > 0) {
            text.append(chunk.data(), static_cast<size_t>(got));
        } else if (errno == EAGAIN && is_pipe) {
            if (const Status waited = wait_for_input(file, path); !waited)
                return waited.error();
        } else if (errno == EAGAIN) {
            // As /proc/kmsg does, which calls itself a regular file.
            return failed("read " + path + ": is a stream without an end, not a file",
                          "name a regular file");
        } else if (errno != EINTR) {
            return from_errno(errno, "read " + path);
        }
    }
    return text;
}

}  // namespace

Result<UniqueFd> open_file(const std::string& path) {
    auto input = open_input(path, {});
    return input ? Result<UniqueFd>(std::move(input->file)) : input.error();
}

Result<std::string> read_file(const std::string& path) {
    return read_input_file(path, {.most_bytes = kMostOfAFile, .mend = {}});
}

Result<std::string> read_input_file(const std::string& path, const InputFile& wanted) {
    const auto input = open_input(path, wanted);
    if (!input)
        return input.error();
    auto text = input->size > wanted.most_bytes
                    ? std::string()
                    : read_all(input->file.get(), path, wanted.most_bytes, input->is_pipe);
    if (text && std::max(input->size, text->size()) > wanted.most_bytes)
        return failed(
            "read " + path + ": has more than " + std::to_string(wanted.most_bytes) + " bytes",
            std::string(wanted.mend));
    return text;
}

Status replace_file(const std::string& path, std::string_view text) {
    std::error_code ignored;
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::filesystem::create_directories(folder, ignored);
    const std::string fresh = path + ".new";
    (void)::unlink(fresh.c_str());  // of a write that was cut off, or no file at all
    const UniqueFd file(
        ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!file)
        return from_errno(errno, "open " + fresh);
    while (!text.empty()) {
        const ssize_t written = ::write(file.get(), text.data(), text.size());
        if (written < 0 && errno != EINTR)
            return from_errno(errno, "write " + fresh);
        text.remove_prefix(static_cast<size_t>(std::max<ssize_t>(written, 0)));
    }
    if (::fsync(file.get()) != 0)
        return from_errno(errno, "write " + fresh);
    if (::rename(fresh.c_str(), path.c_str()) != 0)
        return from_errno(errno, "rename " + fresh);
    const UniqueFd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory)
        (void)::fsync(directory.get());
    return {};
}

Error set_aside(const std::string& path, Error why) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const std::string aside =
        path + ".bad-" +
        std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now).count());
    if (::rename(path.c_str(), aside.c_str()) == 0)
        why.hint = "it was set aside as " + aside;
    return why;
}

}  // namespace sluice
