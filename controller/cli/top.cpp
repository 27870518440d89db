// sluicectl top: which services and which sources are busy, once or for as long as somebody looks.
#include <algorithm>
#include <chrono>
#include <utility>

#include "base/text.h"
#include "cli/command_line.h"
#include "cli/format.h"
#include "cli/terminal.h"
#include "cli/through_daemon.h"
#include "cli/top_view.h"
#include "cli/traffic.h"

namespace sluice::cli {

namespace {

using std::chrono::milliseconds, std::chrono::steady_clock;

constexpr std::chrono::seconds kRefresh{1};
// More than fits on a screen, and few enough to read.
constexpr size_t kMostSources = 1000;
constexpr std::string_view kBanFor = "1h";

struct Options {
    std::string count = "20";
    std::string by = "dropped";
    std::optional<std::string> service;
    bool watch = false;
};

// In the daemon: who was heavy lately.
Json sources_json(const HeavySources& heavy, const Options& options, HeavyBy by, size_t count) {
    Json list = Json::array();
    for (const HeavySource& source :
         heavy.heaviest(by, options.service, count, HeavySources::Clock::now()))
        list.push_back({{"source", source.source.to_string()},
                        {"service", source.service},
                        {"dropped_per_s", source.dropped},
                        {"passed_per_s", source.passed},
                        {"connections_per_s", source.connections},
                        {"rule", source.rule.empty() ? Json() : Json(source.rule)}});
    return {{"by", heavy_by_name(by)}, {"sources", std::move(list)}};
}

Result<Json> ask_sources(HeavyBy by, const std::optional<std::string>& service, size_t count,
                         const Session& session) {
    std::vector<std::string> words = {"top", "--by", std::string(heavy_by_name(by)), "-n",
                                      std::to_string(count)};
    if (service)
        words.insert(words.end(), {"--service", *service});
    auto answer = ask_daemon(words, session);
    if (!answer)
        return unreached(session,
                         "it reads the samples that top is made of: start sluiced; totals "
                         "without it: sluicectl services");
    if (!*answer)
        return answer->error();
    return (*answer)->data;
}

// Both in one object.
Json joined(Json traffic, const Json& sources) {
    traffic.update(sources);
    return traffic;
}

class Watch {
  public:
    Watch(const Session& session, HeavyBy by, std::optional<std::string> service)
        : session_(&session) {
        choice_.by = by;
        choice_.service = std::move(service);
    }

    Result<Answer> run(Terminal& terminal) {
        if (const Status first = refresh(terminal.rows()); !first)
            return first.error();
        auto due = steady_clock::now() + kRefresh;
        for (;;) {
            terminal.draw(draw_top(data_, choice_, terminal.rows(), terminal.columns()));
            const auto left = std::chrono::duration_cast<milliseconds>(due - steady_clock::now());
            if (const auto press = terminal.wait_for_key(left)) {
                if (press->key == Terminal::Key::quit && !ban_pending_ && choice_.text.empty())
                    return Answer{{}, {}, true};
                obey(*press);
                // What was asked for is shown at once.
                if (std::exchange(stale_, false))
                    due = steady_clock::now();
            }
            if (steady_clock::now() < due)
                continue;
            if (!choice_.paused) {
                const Status done = refresh(terminal.rows());
                // What failed before is of no interest once it works again.
                if (!done || !failure_.empty())
                    choice_.message = done ? std::string() : done.error().message;
                failure_ = done ? std::string() : done.error().message;
            }
            due = steady_clock::now() + kRefresh;
        }
    }

  private:
    Status refresh(size_t rows) {
        auto traffic = ask_traffic(*session_);
        if (!traffic)
            return traffic.error();
        const auto sources = ask_sources(choice_.by, choice_.service, rows, *session_);
        if (!sources)
            return sources.error();
        if (!before_.is_null())
            add_rates(*traffic, before_);
        before_ = *traffic;
        data_ = joined(*std::move(traffic), *sources);
        return {};
    }

    void obey(const Terminal::Press& press) {
        choice_.message.clear();
        choice_.text.clear();
        if (std::exchange(ban_pending_, false)) {
            if (press.character == 'y')
                ban();
            return;
        }
        switch (press.key) {
            case Terminal::Key::up:
                return select(-1);
            case Terminal::Key::down:
                return select(1);
            default:
                break;
        }
        switch (press.character) {
            case 'd':
                return sort_by(HeavyBy::dropped);
            case 'p':
                return sort_by(HeavyBy::passed);
            case 'c':
                return sort_by(HeavyBy::connections);
            case 'f':
                return next_filter();
            case ' ':
                choice_.paused = !choice_.paused;
                return;
            case 'b':
                if (has_selection()) {
                    ban_pending_ = true;
                    choice_.message = "ban " + *choice_.selected + " for " + std::string(kBanFor) +
                                      "? y bans, any other key does not";
                }
                return;
            case 'w':
                if (has_selection())
                    explain();
                return;
            default:
                return;
        }
    }

    // By address, which stays the same while the order changes.
    void select(int step) {
        const Json& sources = data_["sources"];
        if (sources.empty())
            return;
        int place = -1;
        for (size_t i = 0; i < sources.size(); ++i)
            if (choice_.selected == sources[i]["source"])
                place = static_cast<int>(i);
        place = place < 0 ? 0 : std::clamp(place + step, 0, static_cast<int>(sources.size()) - 1);
        choice_.selected = sources[static_cast<size_t>(place)]["source"].get<std::string>();
    }

    bool has_selection() {
        if (!choice_.selected && data_["sources"].size() == 1)
            select(0);
        if (!choice_.selected)
            choice_.message = "select a source first: up, down";
        return choice_.selected.has_value();
    }

    void sort_by(HeavyBy by) {
        choice_.by = by;
        stale_ = true;
    }

    // Each service in turn, then all.
    void next_filter() {
        const Json& services = data_["services"];
        size_t next = 0;
        for (size_t i = 0; i < services.size(); ++i)
            if (choice_.service == services[i]["name"])
                next = i + 1;
        choice_.service = next < services.size() && (next > 0 || !choice_.service)
                              ? std::optional(services[next]["name"].get<std::string>())
                              : std::nullopt;
        stale_ = true;
    }

    void ban() {
        const auto answer = ask_daemon(
            {"ban", *choice_.selected, "--ttl", std::string(kBanFor), "--reason", "seen in top"},
            *session_);
        choice_.message = !answer                       ? "no daemon answers at " + session_->socket
                          : !*answer                    ? answer->error().message
                          : (*answer)->warnings.empty() ? "banned " + *choice_.selected
                                                        : (*answer)->warnings.front();
    }

    // The text of `why`, in place of the sources.
    void explain() {
        CommandLine line;
        add_all_commands(line);
        const char* const words[] = {"sluicectl", "why", choice_.selected->c_str()};
        const auto choice = line.parse(static_cast<int>(std::size(words)), words);
        const auto answer = ask_daemon({"why", *choice_.selected}, *session_);
        if (!choice || !answer || !*answer) {
            choice_.message = !answer    ? "no daemon answers at " + session_->socket
                              : !*answer ? answer->error().message
                                         : choice.error().message;
            return;
        }
        Screen screen(false);
        choice->handler->show((*answer)->data, screen);
        std::string text = screen.text();
        for (size_t end = 0; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1))
            choice_.text.push_back(text.substr(0, end));
        choice_.text.emplace_back();
        choice_.text.emplace_back("any key goes back");
    }

    const Session* session_;
    TopChoice choice_;
    Json data_;
    Json before_;
    bool ban_pending_ = false;
    bool stale_ = false;
    std::string failure_;  // of the last reading
};

Result<Answer> run(const Options& options, const Session& session) {
    const auto by = parse_heavy_by(options.by);
    if (!by)
        return by.error().with_context("--by");
    const auto count = parse_count("-n", options.count);
    if (!count)
        return count.error();
    const size_t most = std::min(*count, kMostSources);
    if (session.heavy != nullptr) {
        Answer answer;
        answer.data = sources_json(*session.heavy, options, *by, most);
        return answer;
    }
    if (options.watch && session.json)
        return make_error(ErrorCode::usage, "--watch is for people; --json answers once",
                          "leave one of them out");
    // Whether there is a daemon is known before a second is spent on measuring.
    if (const auto there = ask_sources(*by, options.service, 1, session); !there)
        return there.error();
    if (options.watch) {
        const auto terminal = Terminal::open(session.colors);
        if (!terminal)
            return terminal.error();
        return Watch(session, *by, options.service).run(**terminal);
    }
    auto traffic = measure_traffic(session);
    if (!traffic)
        return traffic.error();
    const auto sources = ask_sources(*by, options.service, most, session);
    if (!sources)
        return sources.error();
    Answer answer;
    answer.data = joined(*std::move(traffic), *sources);
    return answer;
}

void show(const Json& data, Screen& screen) {
    TopChoice choice;
    if (const auto by = parse_heavy_by(data["by"].get<std::string>()))
        choice.by = *by;
    constexpr size_t kAnyWidth = 1000;
    const size_t rows = data["services"].size() * 3 + data["sources"].size() + 16;
    auto lines = draw_top(data, choice, rows, kAnyWidth);
    lines.pop_back();  // keys
    while (!lines.empty() && lines.back().cells.empty())
        lines.pop_back();
    for (const ViewLine& line : lines)
        screen.cells(line.cells);
}

}  // namespace

void add_top(CommandLine& line) {
    auto options = std::make_shared<Options>();
    CLI::App* app =
        line.add("top", "The busiest services and sources, by samples of the last seconds");
    app->add_option("-n", options->count, "How many sources")
        ->type_name("NUMBER")
        ->capture_default_str();
    app->add_option("--by", options->by, "dropped, passed or connections")
        ->type_name("WHAT")
        ->capture_default_str();
    app->add_option("--service", options->service, "Only sources there")->type_name("NAME");
    app->add_flag("--watch", options->watch, "Until q, with keys to sort, filter, ban and ask why");
    line.handle(
        app, [options](const Session& session) { return run(*options, session); }, show);
}

}  // namespace sluice::cli
