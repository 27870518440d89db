#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

namespace sluice {

namespace {

bool continues(char c) {
    return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

struct Character {
    uint32_t code = 0;
    size_t bytes = 1;
    bool valid = false;
};

// The first character of what is not empty; a byte that begins none stands for itself.
Character first_of(std::string_view text) {
    const auto lead = static_cast<unsigned char>(text.front());
    if (lead < 0x80)
        return {lead, 1, true};
    constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
    constexpr uint32_t kMost = 0x10ffff;
    const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes ||
        !std::all_of(text.begin() + 1, text.begin() + static_cast<ptrdiff_t>(bytes), continues))
        return {lead, 1, false};
    uint32_t code = lead & (0xffU >> (bytes + 1));
    for (size_t i = 1; i < bytes; ++i)
        code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3fU);
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    if (code < kLeast[bytes] || code > kMost || surrogate)
        return {lead, 1, false};
    return {code, bytes, true};
}

// C0, DEL, C1, the two separators that end a line, and what changes the direction of writing.
bool is_harmful(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x061c || code == 0x200e ||
           code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

std::string escape(const Character& character) {
    switch (character.code) {
        case '\n':
            return "\\n";
        case '\r':
            return "\\r";
        case '\t':
            return "\\t";
        default:
            break;
    }
    std::array<char, 16> buffer{};
    (void)std::snprintf(buffer.data(), buffer.size(), character.bytes == 1 ? "\\x%02x" : "\\u%04x",
                        character.code);
    return buffer.data();
}

std::string cleaned(std::string_view text, bool keep_lines) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const Character character = first_of(text);
        // A carriage return alone would write over the line's beginning.
        const bool layout =
            keep_lines && (character.code == '\n' || character.code == '\t' ||
                           (character.code == '\r' && text.substr(1).starts_with('\n')));
        if (character.valid && (layout || !is_harmful(character.code)))
            out += text.substr(0, character.bytes);
        else
            out += escape(character);
        text.remove_prefix(character.bytes);
    }
    return out;
}

}  // namespace

std::string shortened(std::string_view text, size_t most) {
    if (text.size() <= most)
        return std::string(text);
    // A character has at most four bytes; what is no UTF-8 is cut anywhere.
    constexpr size_t kMostContinued = 3;
    size_t end = most;
    while (end > 0 && most - end < kMostContinued && continues(text[end]))
        --end;
    return std::string(text.substr(0, end)) + "…";
}

std::string in_quotes(std::string_view text) {
    return '"' + shortened(text) + '"';
}

std::string printable(std::string_view text) {
    return cleaned(text, false);
}

std::string printable_lines(std::string_view text) {
    return cleaned(text, true);
}

}  // namespace sluice
