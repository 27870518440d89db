#include "redis/connection.h"

#include <algorithm>
#include <charconv>

#include "base/file.h"
#include "base/text.h"

namespace sluice::redis {

namespace {

constexpr InputFile kPasswordFile{.most_bytes = 4'096,
                                  .mend = "it has to hold the password and nothing else"};

Status check_role(const Reply& role) {
    const auto parts = role.as_array();
    if (!parts)
        return parts.error();
    const auto name = parts->empty() ? Result(std::string_view()) : parts->front().as_text();
    if (name && *name == "master")
        return {};
    return explain("READONLY the server is a " + std::string(name ? *name : "?") + ", no master");
}

// The value of "name:value\r\n".
std::string_view field(std::string_view info, std::string_view name) {
    const size_t at = info.find("\n" + std::string(name) + ':');
    if (at == std::string_view::npos)
        return {};
    const std::string_view value = info.substr(at + name.size() + 2);
    return value.substr(0, value.find('\r'));
}

Result<std::chrono::microseconds> to_duration(const Reply& number) {
    const auto text = number.as_text();
    if (!text)
        return text.error();
    int64_t value = 0;
    if (std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc{})
        return failed("Redis answered " + in_quotes(*text) + " where a number was expected");
    return std::chrono::microseconds(value);
}

Result<Command> make_auth(const Access& access) {
    auto password = read_input_file(access.password_file, kPasswordFile);
    if (!password)
        return password.error().with_context("password_file");
    while (password->ends_with('\n') || password->ends_with('\r'))
        password->pop_back();
    if (password->empty())
        return make_error(ErrorCode::usage, "password_file " + access.password_file + ": is empty",
                          "write the password into it, or leave password_file out");
    Command command{"AUTH"};
    if (!access.username.empty())
        command.add(access.username);
    command.add(*password);
    return command;
}

}  // namespace

size_t replicas_in(const Reply& role) {
    // "master", offset, the replicas: each with address, port, acknowledged offset.
    const auto parts = role.as_array();
    if (!parts || parts->size() != 3)
        return 0;
    const auto replicas = (*parts)[2].as_array();
    if (!replicas)
        return 0;
    return static_cast<size_t>(std::ranges::count_if(*replicas, [](const Reply& replica) {
        const auto fields = replica.as_array();
        return fields && fields->size() == 3 && (*fields)[2] != Reply::text("0");
    }));
}

Status log_in(Wire& wire, const Access& access, Deadline deadline) {
    const auto command = make_auth(access);
    if (!command)
        return command.error();
    const auto replies = wire.ask(std::span(&*command, 1), deadline);
    if (!replies)
        return replies.error();
    if (replies->front().error_word() != "ERR")
        return replies->front().check();
    return make_error(ErrorCode::not_permitted, "ERR to AUTH",
                      "has the server a password, and the command AUTH? its words are not shown, "
                      "since they may repeat the password");
}

Result<Connection> Connection::open(const Endpoint& endpoint, const Access& access, Role wanted,
                                    Deadline deadline) {
    auto stream = Stream::open(endpoint, access.tls ? &*access.tls : nullptr, deadline);
    if (!stream)
        return stream.error();
    Connection connection(Wire(*std::move(stream)));
    if (const Status introduced = connection.introduce(access, wanted, deadline); !introduced) {
        Error error = introduced.error();
        // With TLS 1.3 a server refuses this side's certificate after the handshake, and its
        // reason may get lost with the connection.
        if (access.tls && error.code == ErrorCode::unreachable && error.hint.empty())
            error.hint = "does the server ask for a cert_file (tls-auth-clients)? see its log";
        return error;
    }
    return connection;
}

Status Connection::introduce(const Access& access, Role wanted, Deadline deadline) {
    if (!access.password_file.empty())
        if (const Status logged_in = log_in(wire_, access, deadline); !logged_in)
            return logged_in;
    const auto asked = std::chrono::system_clock::now();
    // The name is for people who look at CLIENT LIST; it may be forbidden.
    std::vector<Command> commands = {
        {"ROLE"}, {"INFO", "server"}, {"TIME"}, {"CLIENT", "SETNAME", "sluice"}};
    if (access.database != 0)
        commands.push_back(Command{"SELECT"}.add(access.database));
    const auto replies = wire_.ask(commands, deadline);
    if (!replies)
        return replies.error();
    if (wanted == Role::master)
        if (const Status checked = check_role((*replies)[0]); !checked)
            return checked;
    replicas_ = replicas_in((*replies)[0]);
    if (const Status learned = learn_run_id((*replies)[1]); !learned)
        return learned;
    if (const Status learned = learn_time((*replies)[2], asked); !learned)
        return learned;
    return access.database != 0 ? replies->back().check() : Status();
}

Status Connection::learn_run_id(const Reply& info) {
    const auto text = info.as_text();
    if (!text)
        return text.error();
    run_id_ = field(*text, "run_id");
    if (run_id_.empty())
        return failed("INFO server of Redis names no run_id");
    return {};
}

Status Connection::learn_time(const Reply& time, std::chrono::system_clock::time_point asked) {
    using std::chrono::microseconds;
    const auto parts = time.as_array();
    if (!parts)
        return parts.error();
    if (parts->size() != 2)
        return failed("TIME of Redis has not two parts");
    const auto seconds = to_duration((*parts)[0]);
    const auto fraction = to_duration((*parts)[1]);
    if (!seconds || !fraction)
        return seconds ? fraction.error() : seconds.error();
    const auto middle = asked + (std::chrono::system_clock::now() - asked) / 2;
    time_offset_ = *seconds * 1'000'000 + *fraction -
                   std::chrono::duration_cast<microseconds>(middle.time_since_epoch());
    return {};
}

}  // namespace sluice::redis
