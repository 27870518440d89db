#include "redis/command.h"

#include <strings.h>

#include <algorithm>
#include <array>

#include "redis/script.h"

namespace sluice::redis {

namespace {

constexpr std::array<std::string_view, 17> kWithoutKey = {
    "ACL",  "ASKING", "AUTH", "CLIENT", "CLUSTER",  "CONFIG", "DBSIZE",    "FLUSHALL", "FUNCTION",
    "INFO", "PING",   "ROLE", "SCRIPT", "SENTINEL", "TIME",   "SUBSCRIBE", "WAIT"};
// NAME code numkeys key …
constexpr std::array<std::string_view, 6> kScripts = {"EVAL",       "EVALSHA", "EVAL_RO",
                                                      "EVALSHA_RO", "FCALL",   "FCALL_RO"};

bool same_word(std::string_view a, std::string_view b) {
    return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view known) { return same_word(known, name); });
}

size_t key_position(std::span<const std::string> words) {
    if (is_one_of(kWithoutKey, words.front()))
        return words.size();
    if (is_one_of(kScripts, words.front()))
        return words.size() > 2 && words[2] != "0" ? 3 : words.size();
    if (!same_word(words.front(), "XREAD"))
        return 1;
    const auto streams = std::find_if(words.begin(), words.end(), [](const std::string& word) {
        return same_word(word, "STREAMS");
    });
    return static_cast<size_t>(streams - words.begin()) + 1;
}

}  // namespace

Command& Command::add(std::string_view word) {
    words_.emplace_back(word);
    return *this;
}

Command& Command::add_run_id() {
    run_id_at_ = words_.size();
    return add("");
}

std::optional<std::string_view> Command::key() const {
    const size_t at = words_.empty() ? 0 : key_position(words_);
    if (at >= words_.size())
        return std::nullopt;
    return words_[at];
}

Command Command::with_text() const {
    Command copy = *this;
    copy.words_[0] = "EVAL";
    copy.words_[1] = script_->text;
    return copy;
}

}  // namespace sluice::redis
