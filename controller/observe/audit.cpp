#include "observe/audit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/unique_fd.h"
#include "observe/timestamp.h"

namespace sluice {

namespace {

struct Tail {
    std::string text;
    bool whole = true;  // nothing stands in front of it
};

// The last whole lines of a file, at most so many bytes.
Result<Tail> read_tail(const std::string& path, off_t most) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file)
        return from_errno(errno, "audit: open " + path);
    struct stat info {};
    if (::fstat(file.get(), &info) != 0)
        return from_errno(errno, "audit: read " + path);
    const off_t start = std::max<off_t>(0, info.st_size - most);
    std::string text(static_cast<size_t>(info.st_size - start), '\0');
    size_t got = 0;
    while (got < text.size()) {
        const ssize_t n = ::pread(file.get(), text.data() + got, text.size() - got,
                                  start + static_cast<off_t>(got));
        if (n < 0)
            return from_errno(errno, "audit: read " + path);
        if (n == 0)
            break;
        got += static_cast<size_t>(n);
    }
    text.resize(got);
    if (start > 0)
        text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
    return Tail{std::move(text), start == 0};
}

}  // namespace

Status AuditLog::check() const {
    const UniqueFd file(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK));
    if (!file && errno != ENOENT)
        return from_errno(errno, "audit: open " + path_);
    struct stat info {};
    if (file && ::fstat(file.get(), &info) == 0 && !S_ISREG(info.st_mode))
        return failed("audit: " + path_ + " is no regular file", "move it away");
    if (!file && ::lstat(path_.c_str(), &info) == 0)
        return failed("audit: " + path_ + " points to nothing", "move it away");
    return {};
}

Status AuditLog::write(const Operator& who, const AuditEntry& entry) const {
    using Json = nlohmann::ordered_json;
    const auto text = [](const std::string& value) { return value.empty() ? Json() : Json(value); };
    const Json line = {{"time", format_timestamp(wall_clock_ns())},
                       {"actor", who.name},
                       {"from", who.from ? Json(who.from->to_string()) : Json()},
                       {"action", entry.action},
                       {"target", entry.target},
                       {"before", text(entry.before)},
                       {"after", text(entry.after)},
                       {"reason", text(entry.reason)}};
    const std::string bytes = line.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';

    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
    const UniqueFd file(::open(
        path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, S_IRUSR | S_IWUSR));
    if (!file)
        return from_errno(errno, "audit: open " + path_);
    const off_t end = ::lseek(file.get(), 0, SEEK_END);
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written == static_cast<ssize_t>(bytes.size()))
        return {};
    const int failure = written < 0 ? errno : ENOSPC;
    // Nobody else's line may follow half of this one.
    if (written > 0)
        (void)::ftruncate(file.get(), end);
    return from_errno(failure, "audit: write " + path_);
}

Result<AuditView> AuditLog::read(std::chrono::nanoseconds since) const {
    struct stat info {};
    if (::lstat(path_.c_str(), &info) == 0 &&
        (::stat(path_.c_str(), &info) != 0 || !S_ISREG(info.st_mode)))
        return failed("audit: " + path_ + " is no regular file",
                      "move it away; what it was to hold is in the log of sluiced");
    const auto tail = read_tail(path_, kMostRead);
    if (!tail) {
        if (tail.error().code == ErrorCode::not_found)
            return AuditView{};
        return tail.error();
    }
    const uint64_t now = wall_clock_ns();
    const auto span = static_cast<uint64_t>(since.count());
    const std::string oldest = format_timestamp(span < now ? now - span : 0);
    AuditView view{.lines = {}, .left_out = !tail->whole};
    for (size_t start = 0; start < tail->text.size();) {
        const size_t end = std::min(tail->text.find('\n', start), tail->text.size());
        const std::string line = tail->text.substr(start, end - start);
        start = end + 1;
        const auto json = nlohmann::json::parse(line, nullptr, false);
        // Others may have written to it.
        const auto time = json.is_object() ? json.find("time") : json.end();
        if (!json.is_object() || time == json.end() || !time->is_string())
            continue;
        if (time->get_ref<const std::string&>() >= oldest)
            view.lines.push_back(line);
        else
            view.left_out = false;  // what is older than this was not asked for
    }
    return view;
}

}  // namespace sluice
