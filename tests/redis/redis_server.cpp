#include "redis_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "base/file.h"
#include "base/unique_fd.h"
#include "redis/wire.h"

namespace sluice::lab {

namespace {

// Another server than the one in PATH, such as one of another version.
constexpr const char* kServerVariable = "SLUICE_REDIS_SERVER";
constexpr int kTries = 5;  // somebody may take a free port first

std::string server_program() {
    const char* const wanted = std::getenv(kServerVariable);
    return wanted != nullptr ? wanted : "redis-server";
}

bool is_free(uint16_t port) {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

// In the child, which becomes the program, with its output in a file.
[[noreturn]] void become(const std::vector<std::string>& words, const std::string& output) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<char*> arguments;
    for (const std::string& word : words)
        arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    if (std::freopen(output.c_str(), "a", stdout) != nullptr)
        ::dup2(STDOUT_FILENO, STDERR_FILENO);
    ::execvp(arguments.front(), arguments.data());
    ::_exit(127);
}

pid_t spawn(const std::vector<std::string>& words, const std::string& output) {
    const pid_t child = ::fork();
    if (child == 0)
        become(words, output);
    return child;
}

}  // namespace

uint16_t free_port() {
    // Below the ports that the kernel gives to clients, with and without the 10,000.
    static std::mt19937 random(std::random_device{}());
    std::uniform_int_distribution<int> any(11'000, 20'999);
    for (;;) {
        const auto port = static_cast<uint16_t>(any(random));
        if (is_free(port) && is_free(static_cast<uint16_t>(port + 10'000)))
            return port;
    }
}

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds patience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    do {
        if (condition())
            return true;
        std::this_thread::sleep_for(10ms);
    } while (std::chrono::steady_clock::now() < end);
    return condition();
}

Status run_program(const std::vector<std::string>& words) {
    const TempFolder folder;
    const std::string output = folder.path() + "/output";
    const pid_t child = spawn(words, output);
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return failed(words.front() + " did not end");
    if (WEXITSTATUS(status) != 0)
        return failed(words.front() + ": " + read_file(output).value());
    return {};
}

RedisServer::RedisServer(std::vector<std::string> settings, bool is_sentinel)
    : settings_(std::move(settings)), is_sentinel_(is_sentinel) {
    for (int i = 0; i < kTries && pid_ == 0; i++) {
        port_ = free_port();
        write_config();
        launch();
    }
    EXPECT_NE(pid_, 0) << log();
}

std::string RedisServer::missing() {
    for (const std::string& program : {server_program(), std::string("redis-cli")})
        if (!run_program({program, "--version"}))
            return program + " is not installed";
    return "";
}

void RedisServer::write_config() {
    std::string text = "port " + std::to_string(port_) +
                       "\nbind 127.0.0.1\nprotected-mode no\ndaemonize no\ndir " + folder_.path() +
                       "\nunixsocket " + socket() + '\n';
    if (!is_sentinel_)
        text += "save \"\"\nrepl-diskless-sync-delay 0\n";
    for (const std::string& line : settings_)
        text += line + '\n';
    folder_.write("redis.conf", text);
}

void RedisServer::start() {
    launch();
    EXPECT_NE(pid_, 0) << log();
}

void RedisServer::launch() {
    std::vector<std::string> words = {server_program(), folder_.path() + "/redis.conf"};
    if (is_sentinel_)
        words.push_back("--sentinel");
    pid_ = spawn(words, folder_.path() + "/log");
    EXPECT_TRUE(eventually([&] { return has_ended() || answers(); })) << log();
}

bool RedisServer::has_ended() {
    if (pid_ != 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_)
        pid_ = 0;
    return pid_ == 0;
}

bool RedisServer::answers() const {
    const redis::Reply reply = ask({"PING"});
    return !reply.is_error() || reply.error_word() == "LOADING" || reply.error_word() == "NOAUTH";
}

void RedisServer::stop() {
    ::kill(pid_, SIGTERM);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
}

void RedisServer::kill() {
    if (pid_ == 0)
        return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
}

void RedisServer::pause() {
    ::kill(pid_, SIGSTOP);
}

void RedisServer::resume() {
    ::kill(pid_, SIGCONT);
}

redis::Reply RedisServer::ask(const redis::Command& command) const {
    const auto deadline = redis::Clock::now() + 5s;
    auto stream = redis::Stream::open({.host = {}, .port = 0, .path = socket()}, nullptr, deadline);
    if (!stream)
        return redis::Reply::error(stream.error().message);
    redis::Wire wire(*std::move(stream));
    const auto replies = wire.ask(std::span(&command, 1), deadline);
    return replies ? replies->front() : redis::Reply::error(replies.error().message);
}

std::string RedisServer::log() const {
    const auto text = read_file(folder_.path() + "/log");
    return text ? *text : text.error().message;
}

}  // namespace sluice::lab
