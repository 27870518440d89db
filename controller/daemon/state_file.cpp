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
#include <tuple>
#include <utility>

#include "base/clocks.h"
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
    const bool lasts = grace || list == kRlList;
    if (!lasts && (kind == RuleKind::protect || list == kPolicyList || is_reserved_list(list)))
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

// How the lines of rules begin and end: few, for many rules.
class LineEnds {
  public:
    struct Ends {
        std::optional<std::string_view> word;  // absent: not written
        std::string origin;
    };

    explicit LineEnds(Listing& listing) : listing_(listing) {}

    const Ends& of(const Member& member) {
        const auto [ends, is_new] =
            known_.try_emplace({member.kind(), member.key.list, member.entry.note});
        if (is_new)
            ends->second = make(member);
        return ends->second;
    }
    // Whether the names of all lists could be read.
    [[nodiscard]] const Status& status() const { return status_; }

  private:
    Ends make(const Member& member) {
        // A list that was made since its name was looked for; names come before members.
        if (listing_.list_name(member.key.list).empty() && status_)
            status_ = listing_.begin();
        const RuleOrigin origin = listing_.origin(member);
        return {word_of(member.kind(), origin.list), '\t' + escaped(origin.list) + '\t' +
                                                         escaped(origin.actor) + '\t' +
                                                         escaped(origin.reason)};
    }

    Listing& listing_;
    std::map<std::tuple<RuleKind, uint16_t, uint32_t>, Ends> known_;
    Status status_;
};

// Others may write meanwhile: what stays is written, and of what they change the old or the new.
Status write_rules(const Tables& tables, Writer& out) {
    Listing listing(tables);
    if (const Status begun = listing.begin(); !begun)
        return begun;
    const uint64_t now = gate_now_ns(tables);
    LineEnds line_ends(listing);
    std::string line;
    const Status read = listing.for_each([&](const Member& member) {
        if (!member.live(now))
            return;
        const auto& [word, origin] = line_ends.of(member);
        if (!word)
            return;
        line.assign(*word).append(1, '\t').append(member.prefix().to_string());
        line.append(1, '\t').append(until_text(member.entry.until_ns));
        line.append(1, '\t').append(std::to_string(member.entry.since_s)).append(1, '\t');
        if ((member.entry.flags & SLUICE_RULE_FORCED) != 0)
            line += 'f';
        if ((member.entry.flags & SLUICE_RULE_EXEMPT) != 0)
            line += 'e';
        out.line(line.append(origin));
    });
    return read ? line_ends.status() : read;
}

void write_switches(const Tables& tables, Writer& out) {
    const uint64_t now = gate_now_ns(tables);
    const auto write = [&](const std::string& id, const std::string& mode,
                           const std::optional<nanoseconds>& left) {
        out.line("switch\t" + id + '\t' + mode + '\t' +
                 (left ? until_text(now + static_cast<uint64_t>(left->count()))
                       : std::string(kForGood)));
    };
    // What comes back first, so that it lies beneath again.
    for (const SwitchEntry& entry : list_overrides(tables)) {
        // It comes again from whoever follows the fleet.
        if (entry.by_fleet)
            continue;
        if (entry.after_is_override)
            write(entry.id, entry.after, std::nullopt);
        // What waits for its confirmation goes back, as it would have.
        if (!entry.waits_for_confirmation)
            write(entry.id, entry.now, entry.left);
    }
}

// --- reading -----------------------------------------------------------------------------------

using Fields = std::array<std::string_view, 8>;

// The fields of a line; too few are empty ones.
Fields fields_of(std::string_view line) {
    Fields fields;
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

// A file's lines, a piece at a time.
class Lines {
  public:
    explicit Lines(int fd) : fd_(fd) {}

    // Without its end; nothing where no whole line is left. It holds until the next call.
    Result<std::optional<std::string_view>> next() {
        begin_ = next_;
        size_t end = buffer_.find('\n', begin_);
        while (end == std::string::npos) {
            const size_t looked_at = buffer_.size() - begin_;
            const auto more = read_more();
            if (!more)
                return more.error();
            if (*more == 0)
                return std::optional<std::string_view>();
            end = buffer_.find('\n', looked_at);
        }
        next_ = end + 1;
        return std::optional(std::string_view(buffer_).substr(begin_, end - begin_));
    }
    // Behind the last whole line.
    [[nodiscard]] bool is_torn() const { return next_ != buffer_.size(); }
    // Of all that stands before the line that was read last.
    uLong checksum() {
        sum_ = ::crc32_z(sum_, reinterpret_cast<const Bytef*>(buffer_.data()) + summed_,
                         begin_ - summed_);
        summed_ = begin_;
        return sum_;
    }

  private:
    static constexpr size_t kChunk = 1U << 20;
    // No line of ours is nearly as long.
    static constexpr size_t kLongestLine = 1U << 16;

    // How many bytes that were.
    Result<size_t> read_more() {
        if (buffer_.size() - begin_ > kLongestLine)
            return failed("it has lines that are too long");
        (void)checksum();
        buffer_.erase(0, begin_);
        begin_ = next_ = summed_ = 0;
        const size_t kept = buffer_.size();
        buffer_.resize(kept + kChunk);
        ssize_t got = 0;
        do
            got = ::read(fd_, buffer_.data() + kept, kChunk);
        while (got < 0 && errno == EINTR);
        if (got < 0)
            return from_errno(errno, "read");
        buffer_.resize(kept + static_cast<size_t>(got));
        return static_cast<size_t>(got);
    }

    int fd_;
    std::string buffer_;
    size_t begin_ = 0;   // of the line that was read last
    size_t next_ = 0;    // of the line behind it
    size_t summed_ = 0;  // up to here
    uLong sum_ = 0;
};

class Reader {
  public:
    // Of so many bytes in all.
    Reader(int fd, size_t size) : lines_(fd) {
        // A million of them, moved each time that the vector grows, take as long as to be read.
        state_.kept.rules.reserve(std::min(size / kUsualLine, kMostAtOnce));
    }

    Result<SavedState> read() {
        auto line = lines_.next();
        if (!line)
            return line.error();
        auto fields = fields_of(line->value_or(""));
        if (fields[0] != kMagic)
            return failed("it is not a state of this version");
        Status taken = take_head(fields);
        while (taken) {
            line = lines_.next();
            if (!line)
                return line.error();
            if (!*line)
                return failed("its end is missing");
            fields = fields_of(**line);
            if (fields[0] == "end")
                break;
            taken = take(**line, fields);
        }
        if (taken)
            taken = check_end(fields);
        return taken ? Result<SavedState>(std::move(state_)) : taken.error();
    }

  private:
    static constexpr size_t kUsualLine = 64;         // or longer
    static constexpr size_t kMostAtOnce = 1U << 21;  // what a gate lists by default; a file may lie

    Status take_head(const Fields& fields) {
        const auto monotonic = number_of<uint64_t>(fields[2]),
                   wall = number_of<uint64_t>(fields[3]);
        if (!monotonic || !wall)
            return failed("its first line makes no sense");
        if (fields[1] == boot_id()) {
            left_.now_ns = static_cast<uint64_t>(static_cast<int64_t>(wall_clock_ns()) -
                                                 wall_minus_monotonic_ns());
        } else {
            const uint64_t now = wall_clock_ns();
            left_.now_ns = *monotonic + (now > *wall ? now - *wall : 0);
        }
        return {};
    }

    Status check_end(const Fields& fields) {
        if (fields[2] != std::to_string(lines_.checksum()))
            return failed("its checksum is wrong");
        const auto more = lines_.next();
        if (!more)
            return more.error();
        return *more || lines_.is_torn() ? failed("something stands behind its end") : Status();
    }

    Status take(std::string_view line, const Fields& fields) {
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
        // The last three fields, as they stand there.
        const auto origin = std::string_view(fields[5].data(), line.end());
        state_.kept.rules.push_back(
            {.entry = {.prefix = *prefix,
                       .kind = *kind,
                       .ttl = *left,
                       .forced = fields[4].find('f') != std::string_view::npos,
                       .exempt = fields[4].find('e') != std::string_view::npos,
                       .since_s = *since},
             .origin = origin_of(origin, fields)});
        return {};
    }

    uint32_t origin_of(std::string_view text, const Fields& fields) {
        const auto known = origins_.find(text);
        if (known != origins_.end())
            return known->second;
        auto& origins = state_.kept.origins;
        const auto origin = static_cast<uint32_t>(origins.size());
        origins.push_back({plain(fields[5]), plain(fields[6]), plain(fields[7])});
        origins_.emplace(text, origin);
        return origin;
    }

    Status take_switch(const Fields& fields) {
        const auto mode = parse_mode(fields[2]);
        const auto left = left_.of(fields[3]);
        if (!mode)
            return failed("a switch makes no sense: " + std::string(fields[1]));
        if (left)
            state_.switches.push_back({std::string(fields[1]), *mode, *left});
        return {};
    }

    Lines lines_;
    TimeLeft left_{};
    std::map<std::string, uint32_t, std::less<>> origins_;  // by how they are written
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

bool StateFile::exists() const {
    return ::access(path_.c_str(), F_OK) == 0;
}

Result<SavedState> StateFile::load() const {
    const auto file = open_file(path_);
    if (!file)
        return file.error().code == ErrorCode::not_found ? Result<SavedState>(SavedState{})
                                                         : set_aside(file.error());
    struct stat about {};
    if (::fstat(file->get(), &about) != 0)
        return set_aside(from_errno(errno, "read " + path_));
    auto state = Reader(file->get(), static_cast<size_t>(about.st_size)).read();
    return state ? std::move(state) : set_aside(state.error().with_context(path_));
}

Error StateFile::set_aside(Error why) const {
    return sluice::set_aside(path_, std::move(why));
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
    return SourceRules(tables).restore(state.kept);
}

}  // namespace sluice
