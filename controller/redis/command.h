// A command for Redis: its words, any bytes.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::redis {

struct Script;

// In a pipeline a command without a key (WAIT, PING, TIME …) belongs to the one before it: it goes
// to the same server, and with it if that has to be repeated.
class Command {
  public:
    Command(std::initializer_list<std::string_view> words) : words_(words.begin(), words.end()) {}

    Command& add(std::string_view word);
    template <std::integral T>
    Command& add(T number) {
        return add(std::string_view(std::to_string(number)));
    }
    // The run id of the very process that gets the command, whichever that will be: 40 hex digits.
    Command& add_run_id();

    [[nodiscard]] std::span<const std::string> words() const { return words_; }
    // Where add_run_id() left a gap.
    [[nodiscard]] std::optional<size_t> run_id_at() const { return run_id_at_; }

    // The first key. That is the first argument, except of commands that have none, of scripts
    // and of XREAD.
    [[nodiscard]] std::optional<std::string_view> key() const;

    // The script that an EVALSHA runs, for servers that don't have it yet.
    [[nodiscard]] const Script* script() const { return script_; }
    // The same as EVAL, with the script's text in place of its hash.
    [[nodiscard]] Command with_text() const;

  private:
    friend struct Script;

    std::vector<std::string> words_;
    std::optional<size_t> run_id_at_;
    const Script* script_ = nullptr;
};

}  // namespace sluice::redis
