#include "policy/toml_guard.h"

#include <algorithm>
#include <string>

#include "policy/config_tree.h"

namespace sluice {

namespace {

// Where a line may end for a reader that is generous; TOML itself knows the first two.
constexpr std::string_view kLineEnds = "\n\r\v\f";
// Behind these no key goes on. Blanks and quotes may stand between its parts.
constexpr std::string_view kKeyEnds = "=,[]{}#\n\r\v\f";

// The end of what begins at text[begin] and holds no dots of a key: a comment or a string.
size_t end_of_comment(std::string_view text, size_t begin) {
    return std::min(text.find_first_of(kLineEnds, begin), text.size());
}

size_t end_of_string(std::string_view text, size_t begin) {
    const char quote = text[begin];
    const bool has_escapes = quote == '"';
    const std::string triple(3, quote);
    const bool many_lines = text.substr(begin).starts_with(triple);
    size_t at = begin + (many_lines ? triple.size() : 1);
    for (; at < text.size(); ++at) {
        if (has_escapes && text[at] == '\\') {
            ++at;
        } else if (many_lines && text.substr(at).starts_with(triple)) {
            at += triple.size();
            // Up to two quotes more belong to the text in front of the closing ones.
            for (int more = 0; more < 2 && at < text.size() && text[at] == quote; ++more)
                ++at;
            return at;
        } else if (!many_lines && text[at] == quote) {
            return at + 1;
        } else if (!many_lines && kLineEnds.find(text[at]) != std::string_view::npos) {
            return at;  // never closed, which is for TOML's reader to say
        }
    }
    return text.size();
}

Location place_of(std::string_view text, size_t at, std::string_view file_name) {
    const auto before = text.substr(0, at);
    const auto lines = std::count(before.begin(), before.end(), '\n');
    const size_t line_start = before.rfind('\n') + 1;  // 0 where there is none
    return {std::string(file_name), static_cast<uint32_t>(lines + 1),
            static_cast<uint32_t>(at - line_start + 1)};
}

}  // namespace

Status check_key_parts(std::string_view text, std::string_view file_name) {
    unsigned parts = 1;
    for (size_t at = 0; at < text.size();) {
        const char c = text[at];
        if (c == '#') {
            at = end_of_comment(text, at);
            continue;
        }
        if (c == '"' || c == '\'') {
            at = end_of_string(text, at);
            continue;
        }
        if (kKeyEnds.find(c) != std::string_view::npos)
            parts = 1;
        else if (c == '.' && ++parts > kMostKeyParts)
            return failed(place_of(text, at, file_name).to_string() + ": a key of more than " +
                          std::to_string(kMostKeyParts) +
                          " parts; no key of a configuration has so many");
        ++at;
    }
    return {};
}

}  // namespace sluice
