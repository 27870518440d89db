#include "fleet/rl_memory.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>

#include "base/clocks.h"
#include "base/file.h"
#include "fleet/rl_policy.h"
#include "policy/rl_reader.h"

namespace sluice {

namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr std::string_view kMagic = "sluice-rl-1";
constexpr std::string_view kEnd = "end";
// Scripts that delete a key and write it again are done by then.
constexpr auto kRewrite = 10s;
// How long an answer may take on its way: within that two times to live are of one end.
constexpr auto kSameEnd = 500ms;

std::string_view next_field(std::string_view& line, char end) {
    const std::string_view field = line.substr(0, line.find(end));
    line.remove_prefix(std::min(line.size(), field.size() + 1));
    return field;
}

std::string format(const std::optional<RlNumbers>& numbers) {
    return numbers ? format_rl_numbers(*numbers) : "-";
}

// What format() wrote; false where it is something else.
bool parse_into(std::optional<RlNumbers>& numbers, std::string_view text) {
    if (text == "-")
        return true;
    RlTexts texts;
    if (text == format_rl_numbers({}))
        text = {};
    while (!text.empty()) {
        std::string_view value = next_field(text, ' ');
        const std::string_view name = next_field(value, '=');
        const auto field = std::ranges::find(kRlFields, name, &RlField::name);
        if (field == kRlFields.end())
            return false;
        texts[static_cast<size_t>(field - kRlFields.begin())] = value;
    }
    const auto parsed = parse_rl_numbers(texts);
    if (parsed)
        numbers = *parsed;
    return parsed.has_value();
}

}  // namespace

void RlMemory::see(const RlNumbers& numbers, std::optional<milliseconds> ttl,
                   std::chrono::nanoseconds base_after, Clock::time_point now) {
    error_.clear();
    missed_.reset();
    if (ttl) {
        // The same end, heard once more.
        const auto until = now + *ttl;
        if (!until_ || seen_ != numbers || std::chrono::abs(until - *until_) > kSameEnd)
            until_ = until;
        seen_ = numbers;
        return;
    }
    if (seen_ != numbers || until_)
        since_ = now;
    seen_ = numbers;
    until_.reset();
    if (now - since_ >= base_after)
        base_ = numbers;
}

void RlMemory::see_nothing(Clock::time_point now) {
    error_.clear();
    if (!seen_)
        return;
    const bool was_for_a_time = until_ || (base_ && seen_ != base_);
    if (!was_for_a_time) {
        missed_ = missed_.value_or(now);
        if (now - *missed_ < kRewrite)
            return;
        base_.reset();
    }
    seen_.reset();
    until_.reset();
    missed_.reset();
}

std::optional<RlNumbers> RlMemory::value(Clock::time_point now) const {
    const bool is_over = until_ && now >= *until_;
    return seen_ && !is_over ? seen_ : base_;
}

std::optional<RlMemory::Clock::time_point> RlMemory::ends(Clock::time_point now) const {
    return until_ && now < *until_ ? until_ : std::nullopt;
}

std::string RlMemory::format(Clock::time_point now, uint64_t wall_ms) const {
    uint64_t until_ms = 0;
    if (until_)
        until_ms = wall_ms + static_cast<uint64_t>(std::max<int64_t>(
                                 std::chrono::ceil<milliseconds>(*until_ - now).count(), 0));
    return sluice::format(base_) + '\t' + sluice::format(seen_) + '\t' + std::to_string(until_ms);
}

std::optional<RlMemory> RlMemory::parse(std::string_view line, Clock::time_point now,
                                        uint64_t wall_ms) {
    RlMemory memory;
    const bool is_fine = parse_into(memory.base_, next_field(line, '\t')) &&
                         parse_into(memory.seen_, next_field(line, '\t'));
    uint64_t until_ms = 0;
    const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), until_ms);
    if (!is_fine || failure != std::errc{} || end != line.data() + line.size())
        return std::nullopt;
    memory.since_ = now;
    if (until_ms != 0)
        memory.until_ =
            now + milliseconds(static_cast<int64_t>(until_ms - std::min(until_ms, wall_ms)));
    return memory;
}

RlFile::RlFile(const std::string& state_dir)
    : path_(state_dir + "/rl"), began_(RlMemory::Clock::now()), began_wall_ms_(wall_clock_ms()) {}

Result<RlBook> RlFile::load() const {
    const auto text = read_file(path_);
    if (!text && text.error().code == ErrorCode::not_found)
        return RlBook();
    if (!text)
        return set_aside(path_, text.error());
    const auto now = RlMemory::Clock::now();
    const uint64_t wall_ms = wall_clock_ms();
    std::istringstream lines(*text);
    std::string line;
    bool is_fine = std::getline(lines, line) && line == kMagic;
    RlBook book;
    while (is_fine && std::getline(lines, line) && line != kEnd) {
        std::string_view rest = line;
        const std::string key(next_field(rest, '\t'));
        auto memory = RlMemory::parse(rest, now, wall_ms);
        is_fine = memory.has_value();
        if (memory)
            book.emplace(key, *std::move(memory));
    }
    if (!is_fine || line != kEnd)
        return set_aside(path_, failed(path_ + ": it is torn, or of another version"));
    return book;
}

void RlFile::forget() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    saved_.clear();
}

Status RlFile::save(const RlBook& book) {
    std::string text = std::string(kMagic) + '\n';
    for (const auto& [key, memory] : book)
        text += key + '\t' + memory.format(began_, began_wall_ms_) + '\n';
    text += std::string(kEnd) + '\n';
    if (text == saved_)
        return {};
    const Status saved = replace_file(path_, text);
    if (saved)
        saved_ = std::move(text);
    return saved;
}

}  // namespace sluice
