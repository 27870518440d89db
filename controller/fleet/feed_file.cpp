#include "fleet/feed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/file.h"
#include "base/unique_fd.h"
#include "policy/rule_id.h"

namespace sluice {

namespace {

constexpr std::string_view kMagic = "sluice-fleet-1";
constexpr std::string_view kEnd = "end";
constexpr std::string_view kNothing = "-";  // in place of an empty word

std::string word(const std::string& text) {
    return text.empty() ? std::string(kNothing) : text;
}

std::string unword(std::string text) {
    return text == kNothing ? std::string() : text;
}

std::string text_of(const FeedBook& book, const std::string& fleet) {
    std::string text = std::string(kMagic) + ' ' + fleet + ' ' + word(book.epoch) + ' ' +
                       word(book.feed_id) + ' ' + std::to_string(book.rev) + '\n';
    const auto numbers = [](std::initializer_list<uint64_t> all) {
        std::string line;
        for (const uint64_t number : all)
            line += ' ' + std::to_string(number);
        return line + '\n';
    };
    if (book.beaten)
        text += "beaten " + std::string(mode_name(book.beaten->mode)) +
                numbers({book.beaten->until_ms});
    for (const auto& [target, held] : book.switches)
        text += "switch " + target + ' ' + std::string(mode_name(held.word.mode)) +
                numbers({held.word.expires_ms, held.word.rev, held.lost ? 1U : 0U});
    book.for_each([&](const std::string& member, const HeldRecord& record) {
        text += "member " + member +
                numbers({record.expires_ms, record.rev, record.digest, record.lost ? 1U : 0U});
    });
    return text + std::string(kEnd) + '\n';
}

// Whether the line made sense.
bool take_line(FeedBook& book, std::istringstream& line, const std::string& kind) {
    std::string name, mode_text;
    uint64_t expires = 0, rev = 0, digest = 0;
    bool lost = false;
    if (kind == "member") {
        line >> name >> expires >> rev >> digest >> lost;
        const auto prefix = Prefix::parse(std::string_view(name).substr(name.find('|') + 1));
        if (!line || !prefix)
            return false;
        book.put(name, {*prefix, expires, rev, static_cast<uint16_t>(digest), lost});
        return true;
    }
    if (kind == "switch")
        line >> name >> mode_text >> expires >> rev >> lost;
    else
        line >> mode_text >> expires;
    const auto mode = parse_mode(mode_text);
    if (!line || !mode)
        return false;
    if (kind == "switch")
        book.switches[name] = {{*mode, expires, rev, {}, {}}, lost};
    else
        book.beaten = FeedBook::Beaten{*mode, expires};
    return true;
}

Status write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(fd, text.data(), text.size());
        if (written < 0 && errno != EINTR)
            return from_errno(errno, "write");
        if (written > 0)
            text.remove_prefix(static_cast<size_t>(written));
    }
    return ::fsync(fd) == 0 ? Status() : from_errno(errno, "fsync");
}

}  // namespace

FeedBook FeedFile::load(const std::string& fleet) const {
    auto text = read_file(path_);
    if (!text)
        return {};
    std::istringstream lines(*std::move(text));
    FeedBook book;
    std::string line, magic, name;
    std::getline(lines, line);
    std::istringstream head(line);
    head >> magic >> name >> book.epoch >> book.feed_id >> book.rev;
    book.epoch = unword(book.epoch);
    book.feed_id = unword(book.feed_id);
    if (!head || magic != kMagic || name != fleet)
        return {};
    while (std::getline(lines, line)) {
        std::istringstream fields(line);
        std::string kind;
        fields >> kind;
        if (kind == kEnd)
            return book;
        if (!take_line(book, fields, kind))
            break;
    }
    return {};
}

Status FeedFile::save(const FeedBook& book, const std::string& fleet) const {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
    const std::string fresh = path_ + ".new";
    const UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                               S_IRUSR | S_IWUSR));
    if (!file)
        return from_errno(errno, "open " + fresh);
    if (const Status written = write_all(file.get(), text_of(book, fleet)); !written)
        return written.error().with_context(fresh);
    if (::rename(fresh.c_str(), path_.c_str()) != 0)
        return from_errno(errno, "rename " + fresh);
    return {};
}

}  // namespace sluice
