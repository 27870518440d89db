#include "control/protocol.h"

#include <algorithm>
#include <utility>

namespace sluice {

namespace {

constexpr int kDeepestRequest = 16;  // a list within an object needs two

Error bad_request(std::string what) {
    return make_error(ErrorCode::usage, "bad request: " + std::move(what),
                      R"(send one line such as {"id":1,"command":"ban","args":["192.0.2.1"]})");
}

ErrorCode code_named(std::string_view name) {
    for (const ErrorCode code :
         {ErrorCode::usage, ErrorCode::unreachable, ErrorCode::not_found, ErrorCode::not_permitted})
        if (error_code_name(code) == name)
            return code;
    return ErrorCode::failed;
}

std::string text_at(const ControlJson& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string one_line(const ControlJson& json) {
    return json.dump(-1, ' ', false, ControlJson::error_handler_t::replace) + '\n';
}

}  // namespace

Result<ControlRequest> parse_request(std::string_view line) {
    // The parser takes any depth; whoever walks what it made would overflow the stack.
    bool too_deep = false;
    const auto json = ControlJson::parse(
        line,
        [&](int depth, ControlJson::parse_event_t, ControlJson&) {
            too_deep = too_deep || depth > kDeepestRequest;
            return !too_deep;
        },
        false);
    if (too_deep)
        return bad_request("it is nested more than " + std::to_string(kDeepestRequest) +
                           " levels deep");
    if (json.is_discarded())
        return bad_request("it is no JSON");
    if (!json.is_object())
        return bad_request("it is no JSON object");
    ControlRequest request;
    for (const auto& [key, value] : json.items()) {
        if (key == "id") {
            if (value.is_structured())
                return bad_request("\"id\" must be a number or a string");
            request.id = value;
        } else if (key == "command") {
            if (!value.is_string() || value.get<std::string>().empty())
                return bad_request("\"command\" must be a command's name");
        } else if (key == "args") {
            if (!value.is_array())
                return bad_request("\"args\" must be an array of strings");
        } else if (key == "from") {
            if (!value.is_string())
                return bad_request("\"from\" must be an address");
            request.from = value.get<std::string>();
        } else if (key == "actor") {
            const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' '; };
            if (!value.is_string() ||
                std::ranges::any_of(value.get_ref<const std::string&>(), is_control))
                return bad_request("\"actor\" must be a name");
            request.actor = value.get<std::string>();
        } else {
            return bad_request("unknown key \"" + key + '"');
        }
    }
    std::string word;
    for (const char c : text_at(json, "command") + ' ') {
        if (c != ' ') {
            word += c;
        } else if (!word.empty()) {
            request.words.push_back(std::exchange(word, {}));
        }
    }
    if (request.words.empty())
        return bad_request("it has no \"command\"");
    if (const auto args = json.find("args"); args != json.end())
        for (const ControlJson& argument : *args) {
            if (!argument.is_string())
                return bad_request("\"args\" must be an array of strings");
            request.words.push_back(argument.get<std::string>());
        }
    // The command line's parser would take what stands before it.
    for (const std::string& each : request.words)
        if (each.find('\0') != std::string::npos)
            return bad_request("a NUL is in it");
    return request;
}

std::string format_request(const ControlRequest& request) {
    ControlJson json = {{"id", request.id}, {"command", request.words.at(0)}};
    json["args"] = std::vector<std::string>(request.words.begin() + 1, request.words.end());
    if (request.from)
        json["from"] = *request.from;
    if (request.actor)
        json["actor"] = *request.actor;
    return one_line(json);
}

ControlJson error_answer(const Error& error) {
    ControlJson answer = {{"ok", false},
                          {"error",
                           {{"code", error_code_name(error.code)},
                            {"message", error.message},
                            {"hint", error.hint}}}};
    if (error.busy)
        answer["error"]["busy"] = true;
    return answer;
}

Error error_of(const ControlJson& answer) {
    const auto error = answer.find("error");
    if (error == answer.end() || !error->is_object())
        return failed("the daemon's answer makes no sense");
    const auto busy = error->find("busy");
    return {code_named(text_at(*error, "code")), text_at(*error, "message"),
            text_at(*error, "hint"), busy != error->end() && *busy == true};
}

std::string format_answer(const ControlJson& id, ControlJson answer) {
    ControlJson line = {{"id", id}};
    line.update(answer);
    return one_line(line);
}

}  // namespace sluice
