// The control socket: JSON lines between sluicectl and sluiced.
//
// A request is one object on one line, {"id", "command", "args"}: the command's words ("bans
// flush") and its arguments as on the command line. The answer is one line too: {"id", "ok",
// "data"} or {"id", "ok", "error"}, as `sluicectl --json` prints it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice {

using ControlJson = nlohmann::ordered_json;

// No command line is longer (ARG_MAX counts megabytes, but one argument is 128 KiB at most).
inline constexpr size_t kLongestRequest = 256 * 1024;

struct ControlRequest {
    ControlJson id;                    // handed back as it came
    std::vector<std::string> words;    // command and arguments
    std::optional<std::string> from;   // where the operator sits, by his own word
    std::optional<std::string> actor;  // who he is, where root speaks for somebody (sudo)
};

// ErrorCode::usage where the line is no request.
Result<ControlRequest> parse_request(std::string_view line);
// One line, closed.
std::string format_request(const ControlRequest& request);

// {"ok":false,"error":{…}}; in it "busy":true where another try may do.
ControlJson error_answer(const Error& error);
// The error in such an answer.
Error error_of(const ControlJson& answer);
// One line, closed; whatever bytes are in it, it is UTF-8.
std::string format_answer(const ControlJson& id, ControlJson answer);

// Who is at the other end, by the kernel's word.
struct ControlPeer {
    uid_t uid = 0;
    gid_t gid = 0;
    pid_t pid = 0;
};

}  // namespace sluice
