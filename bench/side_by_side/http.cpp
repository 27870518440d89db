#include "http.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "command.h"
#include "spread.h"

namespace sluice::bench {

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// One process of nginx at the edge of a lane; it ends with this, or with the bench.
class WebServer {
  public:
    // `limits` go into the configuration of the server.
    static Result<WebServer> start(const Lane& lane, unsigned cpu, const std::string& zone,
                                   const std::string& limits) {
        std::string folder = fs::temp_directory_path() / "sluice-bench.XXXXXX";
        if (::mkdtemp(folder.data()) == nullptr)
            return from_errno(errno, "make a folder for nginx");
        WebServer server(folder);
        std::ofstream(server.folder_ + "/page") << std::string(1024, 'x');
        std::ofstream conf(server.folder_ + "/nginx.conf");
        conf << "daemon off; master_process off; pid " << folder << "/pid; error_log /dev/null;\n"
             << "events { worker_connections 1024; }\nhttp { access_log off; " << zone << "\n";
        for (const char* name : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"})
            conf << name << "_temp_path " << folder << "/" << name << ";\n";
        conf << "keepalive_requests 1000000000; server { listen 80 backlog=4096; root " << folder
             << "; " << limits << " } }\n";
        conf.close();
        fs::permissions(folder, fs::perms::all);

        server.process_ = lane.network().in_edge([&] { return launch(folder, cpu); });
        if (server.process_ < 0)
            return from_errno(errno, "start nginx");
        for (int tries = 0; tries < 100; tries++) {
            std::error_code ignored;
            if (fs::exists(folder + "/pid", ignored))
                return server;
            std::this_thread::sleep_for(20ms);
        }
        return failed("nginx does not start");
    }

    WebServer(WebServer&& other) noexcept
        : folder_(std::exchange(other.folder_, {})), process_(std::exchange(other.process_, -1)) {}
    WebServer& operator=(WebServer&&) = delete;
    ~WebServer() {
        if (process_ > 0) {
            ::kill(process_, SIGKILL);
            ::waitpid(process_, nullptr, 0);
        }
        std::error_code ignored;
        if (!folder_.empty())
            fs::remove_all(folder_, ignored);
    }

    [[nodiscard]] double cpu_seconds() const {
        std::ifstream file("/proc/" + std::to_string(process_) + "/stat");
        std::string word;
        for (int i = 0; i < 13; i++)  // its name has no space
            file >> word;
        double user = 0, system = 0;
        file >> user >> system;
        return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
    }

  private:
    explicit WebServer(std::string folder) : folder_(std::move(folder)) {}

    static pid_t launch(const std::string& folder, unsigned cpu) {
        const pid_t parent = ::getpid(), child = ::fork();
        if (child != 0)
            return child;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent || !pin_to(cpu))
            ::_exit(1);
        const int null = ::open("/dev/null", O_RDWR);
        for (const int fd : {0, 1, 2})
            ::dup2(null, fd);
        const std::string conf = folder + "/nginx.conf";
        ::execlp("nginx", "nginx", "-p", folder.c_str(), "-c", conf.c_str(), "-e", "/dev/null",
                 nullptr);
        ::execl("/usr/sbin/nginx", "nginx", "-p", folder.c_str(), "-c", conf.c_str(), "-e",
                "/dev/null", nullptr);
        ::_exit(1);
    }

    std::string folder_;
    pid_t process_ = -1;
};

struct Visits {
    double requests = 0, a_second = 0, refused = 0, p99_ms = 0;
};

double to_ms(const std::string& text) {
    size_t used = 0;
    const double value = std::stod(text, &used);
    const std::string unit = text.substr(used);
    return unit == "us"  ? value / 1e3
           : unit == "s" ? value * 1e3
           : unit == "m" ? value * 6e4
                         : value;
}

// wrk from the world of a lane, on one CPU.
Result<Visits> visit(const Lane& lane, unsigned cpu, unsigned seconds, unsigned connections,
                     const std::string& more) {
    const std::string command = "taskset -c " + std::to_string(cpu) + " wrk -t1 -c" +
                                std::to_string(connections) + " -d" + std::to_string(seconds) +
                                "s --timeout 5s --latency " + more + " http://192.0.2.1/page 2>&1";
    std::string text;
    lane.network().in_world([&] {
        if (FILE* pipe = ::popen(command.c_str(), "r"); pipe != nullptr) {
            std::array<char, 4096> chunk{};
            while (const size_t got = std::fread(chunk.data(), 1, chunk.size(), pipe))
                text.append(chunk.data(), got);
            ::pclose(pipe);
        }
    });
    Visits visits;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string first, second, third;
        words >> first >> second >> third;
        if (first == "99%")
            visits.p99_ms = to_ms(second);
        else if (second == "requests" && third == "in")
            visits.requests = std::stod(first);
        else if (first == "Requests/sec:")
            visits.a_second = std::stod(second);
        else if (first == "Non-2xx")
            visits.refused = std::stod(line.substr(line.rfind(':') + 1));
    }
    if (visits.requests == 0)
        return failed("wrk had no answer: " + text.substr(0, 200));
    return visits;
}

std::optional<std::string> missing_tool() {
    for (const char* tool : {"nginx", "wrk"})
        if (!is_installed(tool))
            return std::string(tool) + ": not installed (Debian: " + tool + ")";
    return {};
}

unsigned last_cpu() {
    return std::max(std::thread::hardware_concurrency(), 1U) - 1;
}

// A flood of SYNs at the port of the server, in a thread of its own.
class SynFlood {
  public:
    SynFlood(const Lane& lane, uint64_t rate) : lane_(lane) {
        plan_.device = "world0";
        plan_.kind = lab::FloodKind::syn;
        plan_.first_source = IpAddress::parse("198.18.0.0").value();
        plan_.destination = IpAddress::parse("192.0.2.1").value();
        plan_.destination_port = 80;
        plan_.sources = 1'000;
        plan_.flows = 1'000;
        plan_.rate = rate;
        plan_.cpu = 0;
        thread_ = std::thread([this] {
            lane_.network().in_world([this] {
                auto flood = lab::Flood::make(plan_);
                if (!flood)
                    return;
                if (const auto report = flood->run(stop_))
                    a_second_ = static_cast<double>(report->sent) / report->elapsed.count();
            });
        });
    }
    ~SynFlood() { stop(); }
    // Packets a second that were sent.
    double stop() {
        stop_ = true;
        if (thread_.joinable())
            thread_.join();
        return a_second_;
    }

  private:
    const Lane& lane_;
    lab::FloodPlan plan_;
    std::atomic<bool> stop_ = false;
    double a_second_ = 0;
    std::thread thread_;
};

}  // namespace

Result<nlohmann::json> measure_rejections(const HttpOptions& options, std::ostream& out) {
    nlohmann::json rows = nlohmann::json::array();
    if (const auto missing = missing_tool()) {
        out << "left out, " << *missing << std::endl;
        return rows;
    }
    auto lane = Lane::make();
    if (!lane)
        return lane.error();
    struct Kind {
        const char* name;
        const char* limits;
        const char* header;
    };
    for (const Kind& kind :
         {Kind{"nginx 429, connection kept", "limit_req zone=one; limit_req_status 429;", ""},
          Kind{"nginx 429, new connection", "limit_req zone=one; limit_req_status 429;",
               "-H 'Connection: close'"},
          Kind{"nginx 200, connection kept", "", ""}}) {
        const auto server = WebServer::start(
            *lane, last_cpu(), "limit_req_zone $binary_remote_addr zone=one:10m rate=1r/m;",
            kind.limits);
        if (!server)
            return server.error();
        std::vector<double> a_second, us;
        for (unsigned round = 0; round < options.rounds; round++) {
            const double before = server->cpu_seconds();
            const auto visits = visit(*lane, 0, options.seconds, 16, kind.header);
            if (!visits)
                return visits.error();
            if (*kind.limits != '\0' && visits->refused < 0.99 * visits->requests)
                return failed("nginx refused too few requests");
            a_second.push_back(visits->a_second);
            us.push_back((server->cpu_seconds() - before) / visits->requests * 1e6);
        }
        const Spread rate = spread_of(a_second), cost = spread_of(us);
        out << std::left << std::setw(40) << kind.name << std::right << std::fixed
            << std::setprecision(0) << std::setw(10) << rate.median << " requests/s"
            << std::setprecision(1) << std::setw(9) << cost.median
            << " us of the server's core each   " << cost.low << " to " << cost.high << std::endl;
        rows.push_back({{"name", kind.name},
                        {"requests_per_second", rate.median},
                        {"us_per_request", cost.median},
                        {"us_middle_half", {cost.low, cost.high}}});
    }
    return rows;
}

Result<nlohmann::json> measure_visitors(const Cast& cast, const BareProgram& programs,
                                        const HttpOptions& options, std::ostream& out) {
    nlohmann::json rows = nlohmann::json::array();
    if (missing_tool())
        return rows;
    Setup setup;
    setup.tcp = true;
    setup.limit = {.rate = 10, .a_minute = false, .burst = 50};
    setup.port = 80;
    setup.let_pass = true;

    constexpr uint64_t kRate = 300'000;
    // The server has the core that also receives the flood: it gets what the limiter leaves.
    const auto measure = [&](const char* name, const Lane& lane, uint64_t rate) -> Status {
        const auto server = WebServer::start(lane, 0, "", "");
        if (!server)
            return server.error();
        std::vector<double> a_second, p99, sent;
        for (unsigned round = 0; round < options.rounds; round++) {
            std::optional<SynFlood> flood;
            if (rate != 0)
                flood.emplace(lane, rate);
            std::this_thread::sleep_for(200ms);
            const auto visits = visit(lane, last_cpu(), options.seconds, 16, "");
            if (flood)
                sent.push_back(flood->stop());
            a_second.push_back(visits ? visits->a_second : 0);
            p99.push_back(visits ? visits->p99_ms : 0);
        }
        const double flooded = sent.empty() ? 0 : spread_of(sent).median;
        out << std::left << std::setw(40) << name << std::right << std::fixed
            << std::setprecision(0) << std::setw(10) << spread_of(a_second).median
            << " pages/s, p99 " << std::setprecision(1) << std::setw(6) << spread_of(p99).median
            << " ms, beside " << std::setprecision(0) << flooded << " SYN/s" << std::endl;
        rows.push_back({{"name", name},
                        {"pages_per_second", spread_of(a_second).median},
                        {"p99_ms", spread_of(p99).median},
                        {"flood_per_second", flooded}});
        return {};
    };

    auto open = Lane::make();
    if (!open)
        return open.error();
    GateOptions gate_options;
    gate_options.drop_all = false;
    auto gate = make_gate(gate_options);
    if (!gate)
        return gate.error();
    if (const auto calm = measure("visitors, no flood", *open, 0); !calm)
        return calm.error();
    // The stack's limiters and nobody at all get a program that passes, or the server's own packets
    // would go a shorter way than those of the flood.
    struct Guarded {
        const char* name;
        Contender* contender;
        bool by_the_stack;
    };
    if (const auto attached = open->attach(programs.pass()); !attached)
        return attached.error();
    if (const auto done = measure("visitors under flood, no limiter", *open, kRate); !done)
        return done.error();
    for (const Guarded& guarded :
         {Guarded{"visitors under flood, nftables", cast.nftables.get(), true},
          Guarded{"visitors under flood, hashlimit", cast.hashlimit.get(), true},
          Guarded{"visitors under flood, Sluice", gate->get(), false}}) {
        if (guarded.contender == nullptr)
            continue;
        if (const auto applied = guarded.contender->apply(setup); !applied)
            return applied.error();
        if (guarded.by_the_stack)
            if (const auto attached = guarded.contender->lane().attach(programs.pass()); !attached)
                return attached.error();
        if (const auto done = measure(guarded.name, guarded.contender->lane(), kRate); !done)
            return done.error();
    }
    return rows;
}

}  // namespace sluice::bench
