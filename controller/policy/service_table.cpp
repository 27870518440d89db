#include "policy/service_table.h"

#include <netinet/in.h>
#include <sluice/hash.h>
#include <sluice/limits.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <unordered_map>

namespace sluice {

namespace {

constexpr unsigned kIpv4Start = 96;  // of 128 bits: where IPv4 begins in the mapped form
constexpr uint32_t kLargestClass = 65'535;

// A match as a range [first, end) of selectors, later of steps between the ranges' borders.
struct Range {
    uint32_t first;
    uint32_t end;
    uint16_t service;
};

// One destination and its place in the tree of prefixes; node 0 is "any".
struct Group {
    std::optional<Prefix> prefix;
    std::vector<Range> own;  // widest first: the narrower ones are painted over them
    std::vector<size_t> children;
};

Error refuse(const std::string& what, std::string mend) {
    return make_error(ErrorCode::usage, what, std::move(mend));
}

unsigned length_of_128(const Prefix& prefix) {
    return prefix.length() + (prefix.family() == Family::ipv4 ? kIpv4Start : 0);
}

Range selectors(const Match& match, uint16_t service) {
    if (match.protocol != IPPROTO_TCP && match.protocol != IPPROTO_UDP)
        return {kProtocolStart + match.protocol, kProtocolStart + match.protocol + 1u, service};
    const uint32_t start = match.protocol == IPPROTO_UDP ? kUdpStart : 0;
    if (!match.ports)
        return {start, start + kUdpStart, service};
    return {start + match.ports->first, start + match.ports->second + 1u, service};
}

// True where IPv4 destinations, in their mapped form, would fall under the IPv6 prefix.
bool covers_mapped_range(const Prefix& prefix) {
    const sluice_address mapped = sluice_network({0, SLUICE_IPV4_LOW}, prefix.length());
    return prefix.family() == Family::ipv6 && mapped.high == prefix.address().high64() &&
           mapped.low == prefix.address().low64();
}

class Compiler {
  public:
    Result<ServiceTable> compile(const std::vector<Service>& services, const ServiceIds& ids) {
        for (const Service& service : services) {
            const auto id = ids.find(service.name);
            if (id == ids.end())
                return failed("service \"" + service.name + "\" has no id");
            for (const Match& match : service.matches)
                add(match, static_cast<uint16_t>(id->second));
        }
        build_tree();
        if (const Status status = check_destinations(); !status)
            return status.error();
        cut_steps();
        classify();
        if (const Status status = check_cells(); !status)
            return status.error();
        fill();
        return std::move(table_);
    }

  private:
    void add(const Match& match, uint16_t service) {
        auto& group = match.destination ? by_prefix_[*match.destination] : any_;
        group.push_back(selectors(match, service));
    }

    // Groups are in ascending order of prefixes, so that a prefix follows all that contain it.
    void build_tree() {
        shield_ipv4();
        groups_.push_back({std::nullopt, any_, {}});
        std::vector<size_t> paths[2];  // from the shortest prefix down, by family
        for (const auto& [prefix, ranges] : by_prefix_) {
            auto& path = paths[prefix.family() == Family::ipv4 ? 0 : 1];
            while (!path.empty() && !groups_[path.back()].prefix->contains(prefix))
                path.pop_back();
            groups_[path.empty() ? 0 : path.back()].children.push_back(groups_.size());
            path.push_back(groups_.size());
            groups_.push_back({prefix, ranges, {}});
            // A /0 is no more specific than "any", so it takes those matches in as its own.
            if (prefix.length() == 0) {
                auto& own = groups_.back().own;
                own.insert(own.end(), any_.begin(), any_.end());
            }
            table_.lengths.push_back(static_cast<uint8_t>(length_of_128(prefix)));
        }
        const auto is_wider = [](const Range& a, const Range& b) {
            return a.end - a.first > b.end - b.first;
        };
        for (Group& group : groups_)
            std::stable_sort(group.own.begin(), group.own.end(), is_wider);
        std::sort(table_.lengths.begin(), table_.lengths.end(), std::greater<>());
        table_.lengths.erase(std::unique(table_.lengths.begin(), table_.lengths.end()),
                             table_.lengths.end());
        table_.groups = static_cast<uint32_t>(groups_.size());
    }

    // In the packet path an IPv4 destination is a mapped one, which ::/0 and the like contain; a
    // longer prefix that says nothing of its own keeps it out of them.
    void shield_ipv4() {
        for (const auto& [prefix, ranges] : by_prefix_)
            if (covers_mapped_range(prefix)) {
                by_prefix_[*Prefix::make(IpAddress::from_ipv4(0), 0)];
                return;
            }
    }

    [[nodiscard]] Status check_destinations() const {
        const size_t destinations = groups_.size() - 1;
        if (destinations > SLUICE_MAX_DESTINATIONS)
            return refuse("the services name " + std::to_string(destinations) +
                              " destinations; the gate holds " +
                              std::to_string(SLUICE_MAX_DESTINATIONS),
                          "match on prefixes instead of single addresses");
        if (table_.lengths.size() > SLUICE_MAX_LENGTHS)
            return refuse("the services' destinations have " +
                              std::to_string(table_.lengths.size()) +
                              " different prefix lengths; the gate looks " +
                              std::to_string(SLUICE_MAX_LENGTHS) + " up at most",
                          "write some of them with a length that others use");
        return {};
    }

    // Between two neighbouring borders of ranges all selectors are alike: a step.
    void cut_steps() {
        starts_ = {0, kUdpStart, kProtocolStart};
        for (const Group& group : groups_)
            for (const Range& range : group.own) {
                starts_.push_back(range.first);
                starts_.push_back(range.end);
            }
        std::sort(starts_.begin(), starts_.end());
        starts_.erase(std::unique(starts_.begin(), starts_.end()), starts_.end());
        if (starts_.back() == kSelectors)
            starts_.pop_back();
        const auto step = [this](uint32_t selector) {
            return static_cast<uint32_t>(
                std::lower_bound(starts_.begin(), starts_.end(), selector) - starts_.begin());
        };
        for (Group& group : groups_)
            for (Range& range : group.own)
                range = {step(range.first), step(range.end), range.service};
    }

    // Calls visit(group, row, parent's row) for each group, parents first; row[step] is a service.
    // Only the rows on the way down are kept: as many as there are prefix lengths.
    template <class Visit>
    void for_each_row(const Visit& visit) const {
        const std::vector<uint16_t> nothing(starts_.size(), SLUICE_SERVICE_OTHER);
        descend(0, nothing, visit);
    }

    // The narrowest range of a step has it. Narrowest first, each step is painted once, however
    // many ranges overlap there.
    static void paint(const std::vector<Range>& widest_first, std::vector<uint16_t>& row) {
        std::vector<uint32_t> next_free(row.size() + 1);  // at or behind a step; a chain of hints
        std::iota(next_free.begin(), next_free.end(), 0U);
        const auto free_from = [&](uint32_t step) {
            while (next_free[step] != step) {
                next_free[step] = next_free[next_free[step]];
                step = next_free[step];
            }
            return step;
        };
        for (auto range = widest_first.rbegin(); range != widest_first.rend(); ++range)
            for (uint32_t step = free_from(range->first); step < range->end;
                 step = free_from(step)) {
                row[step] = range->service;
                next_free[step] = step + 1;
            }
    }

    template <class Visit>
    void descend(size_t index, const std::vector<uint16_t>& above, const Visit& visit) const {
        std::vector<uint16_t> row = above;
        paint(groups_[index].own, row);
        visit(index, row, above);
        for (const size_t child : groups_[index].children)
            descend(child, row, visit);
    }

    // Steps that every group sends to the same service share a class. Each group splits the
    // classes further, by the steps for which it says something else than the group above it.
    void classify() {
        step_class_.assign(starts_.size(), 0);
        uint32_t next = 1;
        for_each_row([&](size_t index, const auto& row, const auto& above) {
            std::unordered_map<uint64_t, uint32_t> split;
            std::vector<Range> ranges = groups_[index].own;
            std::sort(ranges.begin(), ranges.end(),
                      [](const Range& a, const Range& b) { return a.first < b.first; });
            uint32_t next_step = 0;  // ranges overlap; each step is looked at once
            for (const Range& range : ranges)
                for (uint32_t step = std::max(range.first, next_step); step < range.end; ++step) {
                    next_step = step + 1;
                    if (row[step] == above[step])
                        continue;
                    const uint64_t key = uint64_t{step_class_[step]} << 16 | row[step];
                    const auto [entry, added] = split.try_emplace(key, next);
                    next += added ? 1 : 0;
                    step_class_[step] = entry->second;
                }
        });
        if (groups_.size() == 1)
            name_classes_by_service();
        else
            number_classes();
    }

    // Without destinations a class is a service, and the packet path needs no second look-up.
    void name_classes_by_service() {
        for_each_row([this](size_t, const auto& row, const auto&) {
            std::copy(row.begin(), row.end(), step_class_.begin());
            table_.classes = *std::max_element(row.begin(), row.end()) + 1U;
        });
        table_.cells.resize(table_.classes);
        std::iota(table_.cells.begin(), table_.cells.end(), uint16_t{0});
    }

    // In the order of their first selector, so that equal policies give equal tables.
    void number_classes() {
        std::unordered_map<uint32_t, uint32_t> number;
        for (uint32_t step = 0; step < step_class_.size(); ++step) {
            const auto [entry, added] =
                number.try_emplace(step_class_[step], static_cast<uint32_t>(number.size()));
            if (added)
                representative_.push_back(step);
            step_class_[step] = entry->second;
        }
        table_.classes = static_cast<uint32_t>(number.size());
    }

    [[nodiscard]] Status check_cells() const {
        const uint64_t cells = uint64_t{table_.classes} * table_.groups;
        if (cells <= SLUICE_MAX_CELLS && table_.classes <= kLargestClass + 1)
            return {};
        return refuse("the services' matches make " + std::to_string(table_.groups) +
                          " groups of destinations × " + std::to_string(table_.classes) +
                          " classes of ports = " + std::to_string(cells) +
                          " cells; the gate holds " + std::to_string(SLUICE_MAX_CELLS),
                      "use fewer destinations, or the same ports for more of them");
    }

    void fill() {
        for (uint32_t step = 0; step < starts_.size(); ++step) {
            const uint32_t end = step + 1 < starts_.size() ? starts_[step + 1] : kSelectors;
            std::fill(table_.selector_class.begin() + starts_[step],
                      table_.selector_class.begin() + end,
                      static_cast<uint16_t>(step_class_[step]));
        }
        if (groups_.size() == 1)
            return;
        table_.cells.assign(size_t{table_.classes} * table_.groups, SLUICE_SERVICE_OTHER);
        for_each_row([this](size_t index, const auto& row, const auto&) {
            for (uint32_t number = 0; number < table_.classes; ++number)
                table_.cells[index * table_.classes + number] = row[representative_[number]];
        });
        for (size_t index = 1; index < groups_.size(); ++index) {
            const Prefix& prefix = *groups_[index].prefix;
            table_.destinations.push_back({prefix.address().high64(), prefix.address().low64(),
                                           length_of_128(prefix), static_cast<uint32_t>(index)});
        }
    }

    std::vector<Range> any_;
    std::map<Prefix, std::vector<Range>> by_prefix_;
    std::vector<Group> groups_;
    std::vector<uint32_t> starts_;  // first selector of each step
    std::vector<uint32_t> step_class_;
    std::vector<uint32_t> representative_;  // a step of each class
    ServiceTable table_;
};

}  // namespace

Result<ServiceTable> compile_services(const std::vector<Service>& services, const ServiceIds& ids) {
    return Compiler().compile(services, ids);
}

}  // namespace sluice
