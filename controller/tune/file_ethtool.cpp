// The end of Ethtool that is a file of a captured tree: a line "name = text" for each fact.
#include <algorithm>
#include <sstream>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "tune/device.h"

namespace sluice {

namespace {

constexpr std::string_view kBetween = " = ";
constexpr std::string_view kFeature = "feature ";
// Some thousand lines; whatever is longer was not captured by us.
constexpr size_t kLongestFile = 1 << 20;

std::string_view xdp_name(XdpUse use) {
    return use == XdpUse::none ? "none" : use == XdpUse::native ? "native" : "generic";
}

Status take_limit(DeviceFacts& facts, DevicePart part, std::string_view text) {
    DeviceFacts limits;
    if (const Status set = set_part(limits, part, text); !set)
        return set;
    if (part == DevicePart::channels)
        facts.most_channels = limits.channels;
    else
        facts.most_rings = limits.rings;
    return {};
}

Status take(DeviceFacts& facts, const std::string& name, const std::string& text) {
    for (const DevicePart part : kDeviceParts)
        if (name == part_name(part))
            return set_part(facts, part, text);
    if (name == "most channels")
        return take_limit(facts, DevicePart::channels, text);
    if (name == "most rings")
        return take_limit(facts, DevicePart::rings, text);
    if (name == "driver")
        facts.driver = text;
    else if (name == "tcp by port")
        facts.tcp_by_port = text == "on";
    else if (name == "udp by port")
        facts.udp_by_port = text == "on";
    else if (name == "can adapt")
        facts.can_adapt = text == "on";
    else if (name == "can wait")
        facts.can_wait = text == "on";
    else if (name == "xdp")
        facts.xdp = text == "native"    ? XdpUse::native
                    : text == "generic" ? XdpUse::generic
                                        : XdpUse::none;
    else if (name.starts_with(kFeature))
        facts.features[name.substr(kFeature.size())] = text == "on";
    else
        return failed("unknown fact " + in_quotes(name));
    return {};
}

// As the kernel and its drivers do: their own table is made anew, one that was set by hand is kept,
// and holds up a change that takes away the queues that it points at.
Status let_spread_follow(DeviceFacts& facts, const Channels& before) {
    const unsigned queues = receiving(*facts.channels);
    if (is_default(facts.spread, receiving(before)))
        return set_part(facts, DevicePart::spread, default_spread(queues));
    const auto lost = [&](uint32_t queue) { return queue >= queues; };
    if (std::ranges::any_of(facts.spread, lost))
        return failed("the RSS table points at queues that would go");
    return {};
}

class FileEthtool : public Ethtool {
  public:
    explicit FileEthtool(std::string folder) : folder_(std::move(folder)) {}

    Result<DeviceFacts> read(const std::string& interface) override {
        const auto text = read_input_file(folder_ + '/' + interface,
                                          {.most_bytes = kLongestFile, .mend = "capture it again"});
        // Loopback and the like say nothing, and have no file.
        if (!text && text.error().code == ErrorCode::not_found)
            return DeviceFacts{};
        if (!text)
            return text.error();
        DeviceFacts facts;
        std::istringstream lines(*text);
        size_t number = 0;
        for (std::string line; std::getline(lines, line);) {
            ++number;
            const size_t between = line.find(kBetween);
            const Status taken =
                between == std::string::npos
                    ? failed("no \" = \" in " + in_quotes(line))
                    : take(facts, line.substr(0, between), line.substr(between + kBetween.size()));
            if (!taken)
                return taken.error().with_context(folder_ + '/' + interface + ':' +
                                                  std::to_string(number));
        }
        return facts;
    }

    Status set(const std::string& interface, DevicePart part, std::string_view text) override {
        auto facts = read(interface);
        if (!facts)
            return facts.error();
        const Channels before = facts->channels.value_or(Channels{});
        if (const Status set = set_part(*facts, part, text); !set)
            return set;
        if (part == DevicePart::channels)
            if (const Status followed = let_spread_follow(*facts, before); !followed)
                return followed;
        return replace_file(folder_ + '/' + interface, ethtool_file_text(*facts));
    }

    std::map<std::string, uint64_t> counters(const std::string& /*interface*/) override {
        return {};
    }

  private:
    std::string folder_;
};

}  // namespace

std::string ethtool_file_text(const DeviceFacts& facts) {
    std::string text;
    const auto add = [&](std::string_view name, std::string_view value) {
        text.append(name).append(kBetween).append(value).append("\n");
    };
    if (!facts.driver.empty())
        add("driver", facts.driver);
    add("xdp", xdp_name(facts.xdp));
    for (const DevicePart part : kDeviceParts)
        if (const auto value = part_text(facts, part))
            add(part_name(part), *value);
    DeviceFacts limits;
    limits.channels = facts.most_channels;
    limits.rings = facts.most_rings;
    for (const DevicePart part : {DevicePart::channels, DevicePart::rings})
        if (const auto value = part_text(limits, part))
            add("most " + std::string(part_name(part)), *value);
    const auto add_answer = [&](std::string_view name, std::optional<bool> answer) {
        if (answer)
            add(name, *answer ? "on" : "off");
    };
    add_answer("can adapt", facts.can_adapt);
    add_answer("can wait", facts.can_wait);
    add_answer("tcp by port", facts.tcp_by_port);
    add_answer("udp by port", facts.udp_by_port);
    for (const auto& [name, is_on] : facts.features)
        add(std::string(kFeature) + name, is_on ? "on" : "off");
    return text;
}

std::unique_ptr<Ethtool> file_ethtool(std::string folder) {
    return std::make_unique<FileEthtool>(std::move(folder));
}

}  // namespace sluice
