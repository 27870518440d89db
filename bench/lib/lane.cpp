#include "lane.h"

#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sched.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <thread>
#include <utility>

namespace sluice::bench {

namespace {

constexpr const char* kReceiver = "edge0";
constexpr const char* kSender = "world0";

// Each CPU that sends has a queue of its own, which it serves itself: what is sent is received
// before the next batch is made.
unsigned queues() {
    return std::clamp(std::thread::hardware_concurrency(), 1U, 4U);
}

}  // namespace

Status pin_to(unsigned cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (::sched_setaffinity(0, sizeof(set), &set) != 0)
        return from_errno(errno, "pin to CPU " + std::to_string(cpu));
    return {};
}

Result<double> Traffic::time(uint64_t packets) {
    sent_ += packets * floods_.size();
    const auto send = [&](size_t index) {
        return network_->in_world([&] { return floods_[index].time(packets); });
    };
    if (floods_.size() == 1) {
        const auto time = send(0);
        if (!time)
            return time.error();
        return static_cast<double>(time->count());
    }

    std::vector<Result<std::chrono::nanoseconds>> times(floods_.size(),
                                                        failed("a sender did not run"));
    std::barrier start(static_cast<std::ptrdiff_t>(floods_.size()));
    std::vector<std::thread> senders;
    for (size_t i = 0; i < floods_.size(); i++)
        senders.emplace_back([&, i] {
            const auto pinned = pin_to(cpus_[i]);
            start.arrive_and_wait();
            if (pinned)
                times[i] = send(i);
            else
                times[i] = pinned.error();
        });
    for (std::thread& sender : senders)
        sender.join();
    double sum = 0;
    for (const auto& time : times) {
        if (!time)
            return time.error();
        sum += static_cast<double>(time->count());
    }
    return sum / static_cast<double>(times.size());
}

Result<Lane> Lane::make() {
    auto network = lab::Network::make(queues());
    if (!network)
        return network.error();
    return Lane(std::move(*network));
}

Status Lane::attach(int program) const {
    return network_.in_edge([&]() -> Status {
        const auto index = static_cast<int>(::if_nametoindex(kReceiver));
        if (const int rc = bpf_xdp_attach(index, program, XDP_FLAGS_DRV_MODE, nullptr); rc != 0)
            return from_errno(rc, "attach");
        return {};
    });
}

Result<Traffic> Lane::traffic(lab::FloodPlan plan, const std::vector<unsigned>& cpus) const {
    plan.device = kSender;
    Traffic traffic(network_);
    traffic.cpus_ = cpus;
    for (size_t i = 0; i < cpus.size(); i++) {
        auto flood = network_.in_world([&] { return lab::Flood::make(plan); });
        if (!flood)
            return flood.error();
        traffic.floods_.push_back(std::move(*flood));
    }
    return traffic;
}

}  // namespace sluice::bench
