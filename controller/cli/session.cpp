#include "cli/session.h"

#include <cstdio>

#include "base/text.h"
#include "cli/format.h"
#include "cli/screen.h"

namespace sluice::cli {

Result<Session> Session::from(const GlobalOptions& options, Operator who) {
    const auto timeout = parse_time(options.timeout);
    if (!timeout)
        return timeout.error().with_context("--timeout");
    constexpr std::chrono::hours kLongest(1);
    if (*timeout > kLongest)
        return make_error(ErrorCode::usage, "--timeout: more than an hour is no waiting");
    std::string pin_dir = options.pin_dir;
    if (pin_dir.empty())
        return make_error(ErrorCode::usage, "--pin-dir is empty", "such as /sys/fs/bpf/sluice");
    while (pin_dir.size() > 1 && pin_dir.ends_with('/'))
        pin_dir.pop_back();
    if (!pin_dir.starts_with('/'))
        return make_error(ErrorCode::usage, "--pin-dir must be an absolute path",
                          "such as /sys/fs/bpf/sluice");
    if (!options.state_dir.starts_with('/'))
        return make_error(ErrorCode::usage, "--state-dir must be an absolute path",
                          "such as /var/lib/sluice");
    Session session;
    session.json = options.json;
    session.colors = wants_colors(options.color);
    session.pin_dir = std::move(pin_dir);
    session.socket = options.socket;
    session.state_dir = options.state_dir;
    session.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(*timeout);
    session.who = std::move(who);
    return session;
}

void Session::record(const AuditEntry& entry, std::vector<std::string>& warnings) const {
    if (const Status written = AuditLog(state_dir).write(who, entry); !written)
        warnings.push_back("not in the audit log: " + written.error().message);
    std::string change = entry.action + ' ' + entry.target;
    if (!entry.after.empty())
        change += ": " + entry.after;
    log_change(who, change, entry.reason);
    recorded_ = entry;
}

void Session::refused(const Error& error) const {
    if (!recorded_)
        return;
    std::vector<std::string> ignored;  // nothing was changed that the log could lack
    record({recorded_->action, recorded_->target, "", "refused: " + error.message, ""}, ignored);
    recorded_.reset();
}

void Session::progress(std::string_view text) const {
    if (!json)
        (void)std::fprintf(stderr, "%s\n", printable(text).c_str());
}

}  // namespace sluice::cli
