#include "observe/line_sink.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

namespace sluice {

Status LineFile::open() {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
    file_.reset(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK,
                       S_IRUSR | S_IWUSR | S_IRGRP));
    if (!file_)
        return from_errno(errno, "open " + path_);
    struct stat info {};
    size_ = ::fstat(file_.get(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
    looked_ = std::chrono::steady_clock::now();
    return {};
}

bool LineFile::is_still_there() {
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_ < kLookAgain)
        return true;
    looked_ = now;
    struct stat named {
    }, ours{};
    return ::stat(path_.c_str(), &named) == 0 && ::fstat(file_.get(), &ours) == 0 &&
           named.st_dev == ours.st_dev && named.st_ino == ours.st_ino;
}

Status LineFile::rotate() {
    file_.reset();
    for (unsigned number = kKept; number > 0; --number) {
        const std::string from = number == 1 ? path_ : path_ + '.' + std::to_string(number - 1);
        if (::rename(from.c_str(), (path_ + '.' + std::to_string(number)).c_str()) != 0 &&
            errno != ENOENT)
            return from_errno(errno, "rotate " + from);
    }
    return open();
}

Status LineFile::append(const std::string& line) {
    const ssize_t written = ::write(file_.get(), line.data(), line.size());
    if (written == static_cast<ssize_t>(line.size()))
        return {};
    const int failure = written < 0 ? errno : ENOSPC;
    // No line may follow half of this one. (A pipe cannot take it back.)
    if (written > 0)
        (void)!::ftruncate(file_.get(), static_cast<off_t>(size_));
    return from_errno(failure, "write " + path_);
}

Status LineFile::write(const std::string& line) {
    Status status;
    if (!file_ || !is_still_there())
        status = open();
    if (status && size_ > 0 && size_ + line.size() > kLargest)
        status = rotate();
    if (status)
        status = append(line);
    error_ = status ? std::string() : status.error().message;
    if (!status) {
        file_.reset();
        return std::exchange(failing_, true) ? Status{} : status;
    }
    failing_ = false;
    size_ += line.size();
    return {};
}

LineSink line_sink(const std::string& where, std::function<void(const Error&)> complain) {
    const auto never_fails = [] { return std::string(); };
    if (where == "stdout")
        return {[](const std::string& line) {
                    (void)std::fwrite(line.data(), 1, line.size(), stdout);
                    (void)std::fflush(stdout);
                },
                never_fails};
    if (where == "journal")
        return {[](const std::string& line) {
                    (void)sd_journal_send("MESSAGE=%.*s", static_cast<int>(line.size() - 1),
                                          line.data(), "SYSLOG_IDENTIFIER=sluice-events",
                                          "PRIORITY=%i", 6, nullptr);
                },
                never_fails};
    auto file = std::make_shared<LineFile>(where);
    return {[file, complain = std::move(complain)](const std::string& line) {
                if (const Status written = file->write(line); !written)
                    complain(written.error());
            },
            [file] { return file->error(); }};
}

}  // namespace sluice
