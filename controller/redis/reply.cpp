#include "redis/reply.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace sluice::redis {

namespace {

struct Explanation {
    std::string_view word;
    ErrorCode code;
    std::string_view hint;
    bool out_of_service = false;
};

constexpr ErrorCode kFailed = ErrorCode::failed;
constexpr ErrorCode kUnreachable = ErrorCode::unreachable;
constexpr ErrorCode kNotPermitted = ErrorCode::not_permitted;

constexpr std::array kExplanations = {
    Explanation{"NOAUTH", kNotPermitted, "set password_file (and username) in [redis]"},
    Explanation{"WRONGPASS", kNotPermitted,
                "compare username and password_file in [redis] with the server's ACL LIST"},
    Explanation{"NOPERM", kNotPermitted, "grant what it names to the user in [redis]: ACL SETUSER"},
    Explanation{"WRONGTYPE", kFailed,
                "another program keeps something else under this key: look with TYPE, and use "
                "another [fleet] name"},
    Explanation{"OOM", kFailed, "Redis is full: raise its maxmemory, or free memory"},
    Explanation{"MISCONF", kFailed,
                "Redis can't write to its disk and refuses writes: see its log"},
    Explanation{"UNREACHABLE", kUnreachable, "look at the server that it names"},
    Explanation{"NOREPLICAS", kUnreachable,
                "too few replicas follow the server: mend them, or ask for fewer "
                "(min-replicas-to-write)"},
    Explanation{"READONLY", kUnreachable,
                "this is a replica: let url name the master, or the sentinels", true},
    Explanation{"LOADING", kUnreachable, "Redis is reading its data: wait", true},
    Explanation{"MASTERDOWN", kUnreachable, "this replica lost its master: see its log", true},
    Explanation{"CLUSTERDOWN", kUnreachable, "some slots have no server: redis-cli --cluster check",
                true},
    Explanation{"BUSY", kUnreachable, "a script runs for too long: SCRIPT KILL, or FUNCTION KILL"},
    Explanation{"MOVED", kFailed,
                "this server is part of a Redis Cluster: use a url of redis+cluster://"},
    Explanation{"CROSSSLOT", kFailed, "keys of one command need one hash tag"},
};

const Explanation* explanation_of(std::string_view word) {
    const auto found = std::find_if(kExplanations.begin(), kExplanations.end(),
                                    [&](const Explanation& e) { return e.word == word; });
    return found == kExplanations.end() ? nullptr : &*found;
}

std::string_view first_word(std::string_view message) {
    return message.substr(0, message.find(' '));
}

std::string_view kind_name(Reply::Kind kind) {
    switch (kind) {
        case Reply::Kind::nil:
            return "nothing";
        case Reply::Kind::integer:
            return "a number";
        case Reply::Kind::text:
        case Reply::Kind::status:
            return "text";
        case Reply::Kind::error:
            return "an error";
        case Reply::Kind::array:
            return "a list";
    }
    return "nothing";
}

}  // namespace

Reply Reply::integer(int64_t number) {
    return {Kind::integer, number};
}

Reply Reply::text(std::string text) {
    return {Kind::text, std::move(text)};
}

Reply Reply::status(std::string text) {
    return {Kind::status, std::move(text)};
}

Reply Reply::error(std::string message) {
    return {Kind::error, std::move(message)};
}

Reply Reply::array(std::vector<Reply> elements) {
    return {Kind::array, std::move(elements)};
}

std::string_view Reply::error_text() const {
    return is_error() ? std::get<std::string>(value_) : std::string_view();
}

std::string_view Reply::error_word() const {
    return first_word(error_text());
}

Error Reply::unlike(std::string_view expected) const {
    if (is_error())
        return explain(error_text());
    return failed("Redis answered " + std::string(kind_name(kind_)) + " where " +
                  std::string(expected) + " was expected");
}

Result<int64_t> Reply::as_integer() const {
    if (kind_ != Kind::integer)
        return unlike("a number");
    return std::get<int64_t>(value_);
}

Result<std::string_view> Reply::as_text() const {
    if (kind_ != Kind::text && kind_ != Kind::status)
        return unlike("text");
    return std::string_view(std::get<std::string>(value_));
}

Result<std::span<const Reply>> Reply::as_array() const {
    if (kind_ != Kind::array)
        return unlike("a list");
    return std::span<const Reply>(std::get<std::vector<Reply>>(value_));
}

Status Reply::check() const {
    if (is_error())
        return explain(error_text());
    return {};
}

Error explain(std::string_view message) {
    const Explanation* known = explanation_of(first_word(message));
    // Others may have written the words: what they name is shown to people.
    return make_error(known != nullptr ? known->code : kFailed, printable(shortened(message, 300)),
                      std::string(known != nullptr ? known->hint : ""));
}

bool is_out_of_service(const Reply& reply) {
    const Explanation* known = explanation_of(reply.error_word());
    return known != nullptr && known->out_of_service;
}

}  // namespace sluice::redis
