// One error type for the whole controller: what failed, for people, and what to do about it.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace sluice {

// The kinds of failure that a caller can tell apart; each is an exit code of sluicectl.
enum class ErrorCode {
    failed = 1,
    usage = 2,
    unreachable = 3,
    not_found = 4,
    not_permitted = 5,
};

// The stable name of a code, as `error.code` in JSON output.
std::string_view error_code_name(ErrorCode code);

struct Error {
    ErrorCode code = ErrorCode::failed;
    std::string message;
    std::string hint;              // The mend, as a sentence or a command; may be empty.
    bool busy = false;             // Somebody else is at it: another try may do.
    bool another_version = false;  // What is there was made by another version of Sluice.

    // The same error with "context: " in front of the message; added once at each boundary.
    [[nodiscard]] Error with_context(std::string_view context) const;
};

// An error of `code` with a message and, where there is one, a mend.
Error make_error(ErrorCode code, std::string message, std::string hint = {});
// ErrorCode::failed with "message".
Error failed(std::string message, std::string hint = {});
// "operation: strerror(error_number)"; EPERM and EACCES become not_permitted, ENOENT not_found.
// error_number may be negative, as libbpf returns it.
Error from_errno(int error_number, std::string_view operation, std::string hint = {});

}  // namespace sluice
