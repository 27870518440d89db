#include "daemon/state_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/unique_fd.h"
#include "gate/listing.h"
#include "observe/timestamp.h"
#include "operate/protected_sources.h"
#include "policy/rule_id.h"

namespace sluice {

namespace {

using std::chrono::nanoseconds;

constexpr std::string_view kMagic = "sluice-state 1";
constexpr std::string_view kForGood = "-";

std::string boot_id() {
    auto text = read_file("/proc/sys/kernel/random/boot_id").value();
    while (text.ends_with('\n'))
        text.pop_back();
    return text;
}

// --- writing -----------------------------------------------------------------------------------

// A text as one field: no tabs, no newlines.
std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\\')
            out += "\\\\";
        else if (c == '\t')
            out += "\\t";
        else if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    return out;
}

std::string plain(std::string_view field) {
    std::string out;
    for (size_t i = 0; i < field.size(); ++i) {
        if (field[i] != '\\' || i + 1 == field.size())
            out += field[i];
        else if (const char c = field[++i]; c == 't')
            out += '\t';
        else
            out += c == 'n' ? '\n' : c;
    }
    return out;
}

// Lines into a file, in large writes, with their checksum.
class Writer {
  public:
    explicit Writer(int fd) : fd_(fd) {}

    void line(std::string_view text) {
        buffer_ += text;
        buffer_ += '\n';
        lines_++;
        if (buffer_.size() >= kChunk)
            flush();
    }
    Status close() {
        flush();
        const std::string last = "end\t" + std::to_string(lines_) + '\t' + std::to_string(sum_);
        line(last);
        flush();
        if (status_ && ::fsync(fd_) != 0)
            status_ = from_errno(errno, "fsync the state");
        return status_;
    }

  private:
    static constexpr size_t kChunk = 1U << 20;

    void flush() {
        sum_ = ::crc32_z(sum_, reinterpret_cast<const Bytef*>(buffer_.data()), buffer_.size());
        for (size_t done = 0; status_ && done < buffer_.size();) {
            const ssize_t n = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
            if (n > 0)
                done += static_cast<size_t>(n);
            else if (n == 0 || errno != EINTR)
                status_ = from_errno(n == 0 ? ENOSPC : errno, "write the state");
        }
        buffer_.clear();
    }

    int fd_;
    std::string buffer_;
    uint64_t lines_ = 0;
    uLong sum_ = 0;
    Status status_;
};

std::string until_text(uint64_t until_ns) {
    return until_ns == SLUICE_NEVER ? std::string(kForGood) : std::to_string(until_ns);
}

constexpr std::array<std::pair<std::string_view, RuleKind>, 3> kWords = {
    {{"ban", RuleKind::ban}, {"allow", RuleKind::allow}, {"grace", RuleKind::protect}}};

// The word that begins its line; nothing for what the policy or the host itself brings again.
std::optional<std::string_view> word_of(RuleKind kind, const std::string& list) {
    const bool grace = kind == RuleKind::protect && list == kGrace;
    if (!grace && (kind == RuleKind::protect || list == kPolicyList || is_reserved_list(list)))
        return std::nullopt;
    for (const auto& [word, known] : kWords)
        if (known == kind)
            return word;
    return std::nullopt;
}

std::optional<RuleKind> kind_of_word(std::string_view text) {
    for (const auto& [word, kind] : kWords)
        if (word == text)
            return kind;
    return std::nullopt;
}

Status write_rules(const Tables& tables, Writer& out) {
    Listing listing(tables);
    if (const Status begun = listing.begin(); !begun)
        return begun;
    const auto members = listing.all();
    if (!members)
        return members.error();
    const uint64_t now = gate_now_ns(tables);
    std::map<uint32_t, Note> notes;
    for (const Member& member : *members) {
        const std::string list = listing.list_name(member.key.list);
        const auto word = word_of(member.kind(), list);
        if (!member.live(now) || !word)
            continue;
        const auto [note, is_new] = notes.try_emplace(member.entry.note);
        if (is_new)
            note->second = listing.read_note(member.entry.note);
        std::string flags;
        if ((member.entry.flags & SLUICE_RULE_FORCED) != 0)
            flags += 'f';
        if ((member.entry.flags & SLUICE_RULE_EXEMPT) != 0)
            flags += 'e';
        out.line(std::string(*word) + '\t' + member.prefix().to_string() + '\t' +
                 until_text(member.entry.until_ns) + '\t' + std::to_string(member.entry.since_s) +
                 '\t' + flags + '\t' + escaped(list) + '\t' + escaped(note->second.actor) + '\t' +
                 escaped(note->second.reason));
    }
    return {};
}

void write_switches(const Tables& tables, Writer& out) {
    const uint64_t now = gate_now_ns(tables);
    for (const SwitchEntry& entry : list_switches(tables)) {
        // What waits for its confirmation goes back, as it would have.
        if (entry.waits_for_confirmation || !parse_mode(entry.now))
            continue;
        out.line("switch\t" + entry.id + '\t' + entry.now + '\t' +
                 (entry.left ? until_text(now + static_cast<uint64_t>(entry.left->count()))
                             : std::string(kForGood)));
    }
}

// --- reading -----------------------------------------------------------------------------------

// The fields of a line; too few are empty ones.
std::array<std::string_view, 8> fields_of(std::string_view line) {
    std::array<std::string_view, 8> fields;
    for (std::string_view& field : fields) {
        const size_t end = std::min(line.find('\t'), line.size());
        field = line.substr(0, end);
        line.remove_prefix(std::min(end + 1, line.size()));
    }
    return fields;
}

template <class Number>
std::optional<Number> number_of(std::string_view text) {
    Number number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return number;
}

// What is left of deadlines that were written at another time, maybe in another life.
struct TimeLeft {
    uint64_t now_ns;  // in the file's monotonic time

    // Nothing where it is over.
    [[nodiscard]] std::optional<Ttl> of(std::string_view until) const {
        if (until == kForGood)
            return Ttl();
        const auto end = number_of<uint64_t>(until);
        if (!end || *end <= now_ns)
            return std::nullopt;
        return Ttl(nanoseconds(static_cast<int64_t>(*end - now_ns)));
    }
};

class Reader {
  public:
    explicit Reader(std::string_view text) : text_(text) {}

    Result<SavedState> read() {
        if (const Status whole = check(); !whole)
            return whole.error();
        // A million of them, moved each time that the vector grows, take longer than to be read.
        state_.rules.reserve(static_cast<size_t>(std::count(text_.begin(), text_.end(), '\n')));
        while (!text_.empty())
            if (const Status taken = take(next_line()); !taken)
                return taken.error();
        return std::move(state_);
    }

  private:
    std::string_view next_line() {
        const size_t end = std::min(text_.find('\n'), text_.size());
        const std::string_view line = text_.substr(0, end);
        text_.remove_prefix(std::min(end + 1, text_.size()));
        return line;
    }

    // First line, last line, checksum.
    Status check() {
        const std::string_view all = text_;
        const size_t last = all.size() < 2 ? 0 : all.rfind('\n', all.size() - 2) + 1;
        const auto end =
            fields_of(all.substr(last, all.size() - last - (all.ends_with('\n') ? 1 : 0)));
        if (!all.starts_with(kMagic))
            return failed("it is not a state of this version");
        if (end[0] != "end" || !all.ends_with('\n'))
            return failed("its end is missing");
        if (end[2] !=
            std::to_string(::crc32_z(0, reinterpret_cast<const Bytef*>(all.data()), last)))
            return failed("its checksum is wrong");
        text_ = all.substr(0, last);
        const auto head = fields_of(next_line());
        const auto monotonic = number_of<uint64_t>(head[2]), wall = number_of<uint64_t>(head[3]);
        if (!monotonic || !wall)
            return failed("its first line makes no sense");
        if (head[1] == boot_id()) {
            left_.now_ns = static_cast<uint64_t>(static_cast<int64_t>(wall_clock_ns()) -
                                                 wall_minus_monotonic_ns());
        } else {
            const uint64_t now = wall_clock_ns();
            left_.now_ns = *monotonic + (now > *wall ? now - *wall : 0);
        }
        return {};
    }

    Status take(std::string_view line) {
        const auto fields = fields_of(line);
        if (fields[0] == "switch")
            return take_switch(fields);
        const auto kind = kind_of_word(fields[0]);
        if (!kind)
            return {};  // of a later version: not ours to understand
        const auto prefix = Prefix::parse(fields[1]);
        const auto since = number_of<uint64_t>(fields[3]);
        if (!prefix || !since)
            return failed("a line makes no sense: " + std::string(line.substr(0, 100)));
        const auto left = left_.of(fields[2]);
        if (!left)
            return {};
        KeptRule rule;
        rule.entry.prefix = *prefix;
        rule.entry.kind = *kind;
        rule.entry.ttl = *left;
        rule.entry.since_s = *since;
        rule.entry.forced = fields[4].find('f') != std::string_view::npos;
        rule.entry.exempt = fields[4].find('e') != std::string_view::npos;
        rule.list = plain(fields[5]);
        rule.actor = plain(fields[6]);
        rule.reason = plain(fields[7]);
        state_.rules.push_back(std::move(rule));
        return {};
    }

    Status take_switch(const std::array<std::string_view, 8>& fields) {
        const auto mode = parse_mode(fields[2]);
        const auto left = left_.of(fields[3]);
        if (!mode)
            return failed("a switch makes no sense: " + std::string(fields[1]));
        if (left)
            state_.switches.push_back({std::string(fields[1]), *mode, *left});
        return {};
    }

    std::string_view text_;
    TimeLeft left_{};
    SavedState state_;
};

}  // namespace

Status StateFile::save(const Tables& tables) const {
    std::error_code ignored;
    const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
    std::filesystem::create_directories(folder, ignored);
    const std::string fresh = path_ + ".new";
    (void)::unlink(fresh.c_str());  // of a save that was cut off; or no file at all
    const UniqueFd file(
        ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!file)
        return from_errno(errno, "open " + fresh);
    Writer out(file.get());
    out.line(std::string(kMagic) + '\t' + boot_id() + '\t' + std::to_string(gate_now_ns(tables)) +
             '\t' + std::to_string(wall_clock_ns()));
    write_switches(tables, out);
    Status status = write_rules(tables, out);
    if (status)
        status = out.close();
    if (status && ::rename(fresh.c_str(), path_.c_str()) != 0)
        status = from_errno(errno, "rename " + fresh);
    if (!status) {
        (void)::unlink(fresh.c_str());
        return status.error().with_context(path_);
    }
    const UniqueFd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory)
        (void)::fsync(directory.get());
    return {};
}

Result<SavedState> StateFile::load() const {
    const auto text = read_file(path_);
    if (!text)
        return text.error().code == ErrorCode::not_found ? Result<SavedState>(SavedState{})
                                                         : set_aside(text.error());
    auto state = Reader(*text).read();
    return state ? std::move(state) : set_aside(state.error().with_context(path_));
}

Error StateFile::set_aside(Error why) const {
    const std::string aside = path_ + ".bad-" + std::to_string(wall_clock_ns() / 1'000'000'000);
    if (::rename(path_.c_str(), aside.c_str()) == 0)
        why.hint = "it was set aside as " + aside;
    return why;
}

Result<size_t> restore_state(Tables& tables, const SavedState& state) {
    // They are quick, and the gate may be dropping already what it is only to observe.
    std::set<std::string> standing;
    for (const SwitchEntry& entry : list_switches(tables))
        standing.insert(entry.id);
    for (const SavedSwitch& saved : state.switches)
        if (const auto target = parse_switch_target(saved.id);
            target && !standing.contains(saved.id))
            // A service that the policy does not have any more has no switch either.
            (void)set_mode(tables, *target, saved.mode, {.lasts = saved.left, .confirm = {}});
    return SourceRules(tables).restore(state.rules);
}

}  // namespace sluice
