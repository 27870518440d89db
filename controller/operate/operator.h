// Who is at the keyboard, and from where: what every change is signed with.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "net/address.h"

namespace sluice {

struct Operator {
    std::string name;               // the login behind sudo, where there is one
    std::optional<IpAddress> from;  // the client of the SSH session

    // "alice from 192.0.2.7"
    [[nodiscard]] std::string to_string() const;
};

// A user's name, or "uid 1234" where he has none.
std::string login_of(uid_t uid);
Operator current_operator();

// Writes one line to the system log: what was changed, by whom and why.
void log_change(const Operator& who, const std::string& change, const std::string& reason = {});

}  // namespace sluice
