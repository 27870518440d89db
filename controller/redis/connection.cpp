#include "redis/connection.h"

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

Error no_answer() {
    return make_error(
        ErrorCode::unreachable, "no answer in time",
        "look why it is slow (redis-cli --latency, SLOWLOG GET), or raise command_timeout");
}

}  // namespace

Result<Command> log_in(const Access& access) {
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
    // In one round trip. Where the log-in fails, so does all the rest, and harmlessly.
    std::vector<Command> commands;
    if (!access.password_file.empty()) {
        auto command = log_in(access);
        if (!command)
            return command.error();
        commands.push_back(*std::move(command));
    }
    if (access.database != 0)
        commands.push_back(Command{"SELECT"}.add(access.database));
    const size_t facts = commands.size();
    commands.insert(commands.end(),
                    {{"ROLE"}, {"INFO", "server"}, {"TIME"}, {"CLIENT", "SETNAME", "sluice"}});

    const auto asked = std::chrono::system_clock::now();
    if (const Status sent = send(commands, deadline); !sent)
        return sent;
    const auto replies = receive(commands.size(), deadline);
    if (!replies)
        return replies.error();
    for (size_t i = 0; i < facts; i++)
        if (const Status accepted = (*replies)[i].check(); !accepted)
            return accepted;
    if (wanted == Role::master)
        if (const Status checked = check_role((*replies)[facts]); !checked)
            return checked;
    if (const Status learned = learn_run_id((*replies)[facts + 1]); !learned)
        return learned;
    // The name is for people who look at CLIENT LIST; it may be forbidden.
    return learn_time((*replies)[facts + 2], asked);
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

Status Connection::send(std::span<const Command> commands, Deadline deadline) {
    std::string bytes;
    for (const Command& command : commands)
        if (const Status appended = append_command(bytes, command, run_id_); !appended)
            return appended;
    return wire_.send(bytes, deadline);
}

Result<std::vector<Reply>> Connection::receive(size_t count, Deadline deadline) {
    std::vector<Reply> replies;
    replies.reserve(count);
    while (replies.size() < count) {
        auto reply = wire_.receive(deadline);
        if (!reply)
            return reply.error();
        if (!*reply)
            return no_answer();
        replies.push_back(**std::move(reply));
    }
    return replies;
}

}  // namespace sluice::redis
