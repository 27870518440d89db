// HTTP clients with addresses of their own: well-behaved visitors, or a flood of requests.
#include <sys/epoll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <deque>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "address_range.h"
#include "base/unique_fd.h"
#include "visitor.h"

namespace {

using sluice::Error;
using sluice::Family;
using sluice::IpAddress;
using sluice::Result;
using sluice::lab::Clock;
using sluice::lab::Failure;
using sluice::lab::Tally;
using sluice::lab::Visitor;
using sluice::lab::VisitPlan;

std::atomic<bool> stop_requested{false};

struct Options {
    VisitPlan visit;
    std::vector<IpAddress> targets;
    std::vector<IpAddress> sources;
    unsigned connections = 1;
    bool flood = false;
    double pages_per_second = 1;
    double seconds = 10;
    double warmup = 0;
};

std::chrono::nanoseconds to_duration(double seconds) {
    return std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

int fail(const Error& error) {
    std::cerr << "lab_clients: " << error.message << '\n';
    return static_cast<int>(error.code);
}

double percentile(const std::vector<float>& sorted, double share) {
    if (sorted.empty())
        return 0;
    const auto last = static_cast<double>(sorted.size() - 1);
    return static_cast<double>(sorted[static_cast<size_t>(share * last + 0.5)]);
}

nlohmann::json describe(const Options& options, const std::deque<Visitor>& visitors,
                        double elapsed) {
    Tally all;
    nlohmann::json clients = nlohmann::json::array();
    size_t index = 0;
    for (const IpAddress& source : options.sources) {
        Tally own;
        for (unsigned i = 0; i < options.connections; i++)
            own.add(visitors[index++].tally());
        clients.push_back(
            {{"address", source.to_string()}, {"ok", own.ok}, {"failed", own.failures()}});
        all.add(own);
    }
    // A page that did not come took as long as it can take.
    all.latencies_ms.resize(
        all.latencies_ms.size() + all.failures(),
        std::chrono::duration<float, std::milli>(options.visit.timeout).count());
    std::sort(all.latencies_ms.begin(), all.latencies_ms.end());
    nlohmann::json failures = nlohmann::json::object();
    for (size_t i = 0; i < all.failed.size(); i++)
        failures[std::string(failure_name(static_cast<Failure>(i)))] = all.failed[i];

    const uint64_t pages = all.ok + all.failures();
    const double counted = std::max(elapsed - options.warmup, 1e-3);
    return {
        {"clients", options.sources.size()},
        {"pages", pages},
        {"ok", all.ok},
        {"failed", all.failures()},
        {"success", pages == 0 ? 0 : static_cast<double>(all.ok) / static_cast<double>(pages)},
        {"ok_per_second", static_cast<double>(all.ok) / counted},
        {"p50_ms", percentile(all.latencies_ms, 0.50)},
        {"p99_ms", percentile(all.latencies_ms, 0.99)},
        {"seconds", elapsed},
        {"failures", failures},
        {"per_client", clients},
    };
}

Result<nlohmann::json> run(const Options& options) {
    const sluice::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll)
        return sluice::from_errno(errno, "epoll");

    const auto start = Clock::now();
    const auto end = start + to_duration(options.seconds);
    const auto count_from = start + to_duration(options.warmup);
    std::minstd_rand random(1);  // the same arrivals in each run
    std::uniform_real_distribution<double> part(0, 1);

    std::deque<Visitor> visitors;
    for (const IpAddress& source : options.sources) {
        const auto target =
            std::find_if(options.targets.begin(), options.targets.end(),
                         [&](const IpAddress& t) { return t.family() == source.family(); });
        if (target == options.targets.end())
            return sluice::make_error(sluice::ErrorCode::usage,
                                      "no --to of the family of " + source.to_string());
        for (unsigned i = 0; i < options.connections; i++) {
            const auto first = start + to_duration(part(random) * (options.flood ? 0.1 : 1) /
                                                   options.pages_per_second);
            visitors.emplace_back(options.visit, source, *target, first, count_from);
        }
    }

    // Due pages and timeouts are looked at each millisecond, events as they come.
    constexpr auto kTick = std::chrono::milliseconds(1);
    std::array<epoll_event, 256> events;
    auto next_tick = start;
    for (;;) {
        auto now = Clock::now();
        const bool closing = now >= end || stop_requested;
        if (now >= next_tick || options.flood) {
            bool busy = false;
            for (uint64_t i = 0; i < visitors.size(); i++) {
                visitors[i].on_time(now, closing, epoll.get(), i);
                busy = busy || visitors[i].busy();
            }
            next_tick = now + kTick;
            // Visitors see their last page through; a flood just ends.
            if (closing && (!busy || options.flood))
                break;
        }
        const int ready = ::epoll_wait(epoll.get(), events.data(), events.size(), 1);
        if (ready < 0 && errno != EINTR)
            return sluice::from_errno(errno, "epoll_wait");
        now = Clock::now();
        for (int i = 0; i < ready; i++)
            visitors[events[static_cast<size_t>(i)].data.u64].on_event(now);
    }
    const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    return describe(options, visitors, std::min(elapsed, options.seconds));
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    std::vector<std::string> targets;
    std::vector<std::string> sources;
    unsigned source_prefix = 0;
    double timeout = 3;

    CLI::App app("Visits an HTTP server from many addresses and prints how it went as JSON.");
    app.add_option("--to", targets, "server address; once per family")->required();
    app.add_option("--from", sources, "source address, or ADDRESS+N for N of them; repeatable")
        ->required();
    app.add_option("--source-prefix", source_prefix,
                   "prefix length that differs between the addresses of +N (32, IPv6 64)");
    app.add_option("--port", options.visit.port, "server port")->capture_default_str();
    app.add_option("--path", options.visit.path, "page")->capture_default_str();
    app.add_option("--pages", options.pages_per_second, "pages per second of each client")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_flag("--keep-alive", options.visit.keep_alive,
                 "keep connections; else a new one for each page");
    app.add_flag("--flood", options.flood, "ask for page after page without a pause");
    app.add_option("--connections", options.connections, "at a time, of each address")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--timeout", timeout, "seconds until a page has failed")->capture_default_str();
    app.add_option("--duration", options.seconds, "seconds, at most 600")
        ->check(CLI::Range(0.1, 600.0))
        ->capture_default_str();
    app.add_option("--warmup", options.warmup, "seconds at the start that do not count");
    CLI11_PARSE(app, argc, argv);

    for (const std::string& text : targets) {
        auto address = IpAddress::parse(text);
        if (!address)
            return fail(address.error());
        options.targets.push_back(*address);
    }
    for (const std::string& text : sources) {
        auto range = sluice::lab::parse_range(text, source_prefix);
        if (!range)
            return fail(range.error());
        options.sources.insert(options.sources.end(), range->begin(), range->end());
    }
    options.visit.timeout = to_duration(timeout);
    if (!options.flood)
        options.visit.interval = to_duration(1 / options.pages_per_second);

    struct sigaction on_signal {};
    on_signal.sa_handler = [](int) { stop_requested = true; };
    ::sigaction(SIGINT, &on_signal, nullptr);
    ::sigaction(SIGTERM, &on_signal, nullptr);

    auto output = run(options);
    if (!output)
        return fail(output.error());
    std::cout << output->dump() << std::endl;
    return 0;
}
