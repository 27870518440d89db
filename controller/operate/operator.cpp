#include "operate/operator.h"

#include <pwd.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "base/file.h"
#include "base/text.h"
#include "net/host.h"

namespace sluice {

namespace {

constexpr size_t kLongestLogin = 32;  // as useradd allows

bool is_login_name(std::string_view name) {
    return !name.empty() && name.size() <= kLongestLogin &&
           std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

// The user who logged in, which su and sudo do not change; the kernel keeps it per process.
std::optional<uid_t> login_uid() {
    const auto text = read_file("/proc/self/loginuid");
    uid_t uid = 0;
    if (!text || std::from_chars(text->data(), text->data() + text->size(), uid).ec != std::errc{})
        return std::nullopt;
    return uid == std::numeric_limits<uid_t>::max() ? std::nullopt : std::optional(uid);
}

std::string login_name() {
    // Only root may claim to act for somebody else.
    if (const char* name = std::getenv("SUDO_USER");
        ::geteuid() == 0 && name != nullptr && is_login_name(name))
        return name;
    return login_of(login_uid().value_or(::getuid()));
}

}  // namespace

std::string login_of(uid_t uid) {
    std::array<char, 4096> buffer{};
    passwd entry{};
    passwd* found = nullptr;
    if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
        return entry.pw_name;
    return "uid " + std::to_string(uid);
}

std::string Operator::to_string() const {
    return from ? name + " from " + from->to_string() : name;
}

Operator current_operator() {
    return {login_name(), operator_peer()};
}

void log_change(const Operator& who, const std::string& change, const std::string& reason) {
    const std::string line =
        who.to_string() + ": " + change + (reason.empty() ? "" : " (" + reason + ')');
    ::openlog("sluicectl", LOG_PID, LOG_AUTHPRIV);
    ::syslog(LOG_NOTICE, "%s", printable(line).c_str());
    ::closelog();
}

}  // namespace sluice
