#include "tune/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <sstream>
#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "tune/number.h"

namespace sluice {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFirstLine = "sluice tune journal 1";
constexpr std::string_view kSuffix = ".journal";
constexpr std::chrono::milliseconds kPause(20);

// Values are the kernel's, a line each as a rule; a journal's line must stay one.
std::string escaped(std::string_view text) {
    std::string safe;
    for (const char c : text)
        if (c == '\n')
            safe += "\\n";
        else if (c == '\\')
            safe += "\\\\";
        else
            safe += c;
    return safe;
}

std::string unescaped(std::string_view text) {
    std::string plain;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 1 < text.size())
            plain += text[++i] == 'n' ? '\n' : text[i];
        else
            plain += text[i];
    }
    return plain;
}

std::string text_of(const Journal& journal) {
    std::string text(kFirstLine);
    text += "\ninterface\t" + journal.interface + "\nboot\t" + journal.boot + '\n';
    if (journal.since_ms != 0)
        text += "since\t" + std::to_string(journal.since_ms) + '\n';
    for (const JournalEntry& entry : journal.entries) {
        const auto add = [&](const char* verb, const std::string& value) {
            text +=
                std::string(verb) + '\t' + entry.setting.to_string() + '\t' + escaped(value) + '\n';
        };
        add("before", entry.before);
        if (entry.wanted)
            add("wanted", *entry.wanted);
        if (entry.not_taken)
            add("not-taken", *entry.not_taken);
        if (entry.kept)
            add("kept", entry.kept->value);
        if (entry.kept && entry.kept->wanted)
            add("kept-wanted", *entry.kept->wanted);
    }
    if (journal.deadline_ms)
        text += "deadline\t" + std::to_string(*journal.deadline_ms) + '\n';
    if (journal.is_second)
        text += "second\n";
    if (journal.is_done)
        text += "done\n";
    return text;
}

Status take_entry(Journal& journal, const std::string& verb, const std::string& rest) {
    const size_t tab = rest.find('\t');
    const auto setting = Setting::parse(rest.substr(0, tab));
    if (!setting)
        return setting.error();
    if (tab == std::string::npos)
        return failed("no value");
    std::string value = unescaped(std::string_view(rest).substr(tab + 1));
    JournalEntry* known = journal.find(*setting);
    if (verb == "before" && known == nullptr)
        journal.entries.push_back({*setting, std::move(value)});
    else if (verb == "wanted" && known != nullptr)
        known->wanted = std::move(value);
    else if (verb == "not-taken" && known != nullptr)
        known->not_taken = std::move(value);
    else if (verb == "kept" && known != nullptr)
        known->kept = JournalEntry::Kept{std::move(value)};
    else if (verb == "kept-wanted" && known != nullptr && known->kept)
        known->kept->wanted = std::move(value);
    else
        return failed("stands twice, or without what was before");
    return {};
}

Status take_line(Journal& journal, const std::string& line) {
    const size_t tab = line.find('\t');
    const std::string verb = line.substr(0, tab);
    const std::string rest = tab == std::string::npos ? "" : line.substr(tab + 1);
    if (verb == "interface")
        journal.interface = rest;
    else if (verb == "boot")
        journal.boot = rest;
    else if (verb == "done")
        journal.is_done = true;
    else if (verb == "second")
        journal.is_second = true;
    else if (const auto number = whole_number<uint64_t>(rest); verb == "deadline" && number)
        journal.deadline_ms = number;
    else if (verb == "since" && number)
        journal.since_ms = *number;
    else if (verb == "before" || verb == "wanted" || verb == "not-taken" || verb == "kept" ||
             verb == "kept-wanted")
        return take_entry(journal, verb, rest);
    else
        return failed("not understood");
    return {};
}

}  // namespace

JournalEntry* Journal::find(const Setting& setting) {
    const auto found = std::ranges::find(entries, setting, &JournalEntry::setting);
    return found == entries.end() ? nullptr : &*found;
}

Result<UniqueFd> JournalFolder::lock(std::chrono::milliseconds patience) const {
    std::error_code failure;
    fs::create_directories(folder_, failure);
    if (failure)
        return from_errno(failure.value(), "make " + folder_, "run it as root");
    const std::string path = folder_ + "/lock";
    UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file)
        return from_errno(errno, "open " + path, errno == EACCES ? "run it as root" : "");
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return from_errno(errno, "lock " + path);
        if (std::chrono::steady_clock::now() >= deadline) {
            Error error =
                failed("somebody else is tuning this machine", "try again once that is done");
            error.busy = true;
            return error;
        }
        std::this_thread::sleep_for(kPause);
    }
    return file;
}

std::string JournalFolder::path_of(const std::string& interface) const {
    return folder_ + '/' + interface + std::string(kSuffix);
}

Result<Journal> JournalFolder::read(const std::string& interface) const {
    const std::string path = path_of(interface);
    const auto text = read_file(path);
    if (!text && text.error().code == ErrorCode::not_found)
        return make_error(ErrorCode::not_found, "nothing of " + interface + " is tuned",
                          "tune it: sluicectl tune apply " + interface);
    if (!text)
        return text.error();
    std::istringstream lines(*text);
    std::string line;
    if (!std::getline(lines, line) || line != kFirstLine)
        return failed(path + ": is no journal of this version");
    Journal journal;
    for (size_t number = 2; std::getline(lines, line); ++number)
        if (const Status taken = take_line(journal, line); !taken)
            return taken.error().with_context(path + ':' + std::to_string(number));
    if (journal.interface != interface)
        return failed(path + ": is of " + in_quotes(journal.interface));
    return journal;
}

Status JournalFolder::write(const Journal& journal) const {
    return replace_file(path_of(journal.interface), text_of(journal));
}

Status JournalFolder::remove(const std::string& interface) const {
    const std::string path = path_of(interface);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
        return from_errno(errno, "remove " + path);
    return {};
}

Status JournalFolder::is_readable() const {
    if (::faccessat(AT_FDCWD, folder_.c_str(), R_OK | X_OK, AT_EACCESS) != 0 && errno == EACCES)
        return from_errno(EACCES, "read " + folder_, "run it as root");
    return {};
}

std::vector<std::string> JournalFolder::interfaces() const {
    std::vector<std::string> names;
    std::error_code failure;
    for (fs::directory_iterator entry(folder_, failure);
         !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
        const std::string name = entry->path().filename().string();
        if (name.size() > kSuffix.size() && name.ends_with(kSuffix))
            names.push_back(name.substr(0, name.size() - kSuffix.size()));
    }
    std::ranges::sort(names);
    return names;
}

uint64_t boot_time_ms() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000 +
           static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}

}  // namespace sluice
