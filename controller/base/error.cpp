#include "base/error.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace sluice {

std::string_view error_code_name(ErrorCode code) {
    switch (code) {
        case ErrorCode::failed:
            return "failed";
        case ErrorCode::usage:
            return "usage";
        case ErrorCode::unreachable:
            return "unreachable";
        case ErrorCode::not_found:
            return "not_found";
        case ErrorCode::not_permitted:
            return "not_permitted";
    }
    return "failed";
}

Error Error::with_context(std::string_view context) const {
    return Error{code, std::string(context) + ": " + message, hint, busy};
}

Error make_error(ErrorCode code, std::string message, std::string hint) {
    return Error{code, std::move(message), std::move(hint), false};
}

Error failed(std::string message, std::string hint) {
    return make_error(ErrorCode::failed, std::move(message), std::move(hint));
}

Error from_errno(int error_number, std::string_view operation, std::string hint) {
    const int positive = std::abs(error_number);
    ErrorCode code = ErrorCode::failed;
    if (positive == EPERM || positive == EACCES)
        code = ErrorCode::not_permitted;
    else if (positive == ENOENT)
        code = ErrorCode::not_found;
    return make_error(code, std::string(operation) + ": " + std::strerror(positive),
                      std::move(hint));
}

}  // namespace sluice
