// sluicectl init: a commented configuration to start from.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/unique_fd.h"
#include "cli/command_line.h"
#include "operate/starter_config.h"

namespace sluice::cli {

namespace {

std::string mend_of(int error_number, const std::string& path) {
    if (error_number == EEXIST)
        return "name another file, or move this one away";
    if (error_number == ENOENT)
        return "make its folder first: mkdir -p " +
               std::filesystem::path(path).parent_path().string();
    return "";
}

Status write_new_file(const std::string& path, const std::string& text) {
    // Nobody's configuration is overwritten.
    UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file)
        return from_errno(errno, "write " + path, mend_of(errno, path));
    for (size_t done = 0; done < text.size();) {
        const ssize_t count = ::write(file.get(), text.data() + done, text.size() - done);
        if (count < 0) {
            const int error_number = errno;
            (void)::unlink(path.c_str());
            return from_errno(error_number, "write " + path);
        }
        done += static_cast<size_t>(count);
    }
    return {};
}

Result<Answer> run(const std::optional<std::string>& path, const Session&) {
    const auto host = look_at_host();
    if (!host)
        return host.error();
    const std::string text = starter_config(*host);
    if (path)
        if (const Status written = write_new_file(*path, text); !written)
            return written.error();
    Answer answer;
    answer.changed = path.has_value();
    answer.data = {{"file", path ? Json(*path) : Json()},
                   {"interface", host->interface},
                   {"listeners", host->listeners.size()},
                   {"text", text}};
    return answer;
}

void show(const Json& data, Screen& screen) {
    if (data["file"].is_null()) {
        screen.raw(data["text"].get<std::string>());
        return;
    }
    const auto file = data["file"].get<std::string>();
    const auto interface = data["interface"].get<std::string>();
    screen.line("Wrote " + file + ". Read it, then: sluicectl attach " +
                (interface.empty() ? "IFACE" : interface) + " --config " + file);
}

}  // namespace

void add_init(CommandLine& line) {
    auto path = std::make_shared<std::optional<std::string>>();
    CLI::App* app =
        line.add("init", "Write a starting configuration from what this host listens on");
    app->add_option("-o,--output", *path, "Instead of stdout; must not exist yet")
        ->type_name("FILE");
    line.handle(
        app, [path](const Session& session) { return run(*path, session); }, show);
}

}  // namespace sluice::cli
