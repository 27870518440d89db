#include "fleet/source_message.h"

#include "sources.lua.h"

namespace sluice {

SourceKeys::SourceKeys(std::string_view fleet, unsigned shard) {
    const std::string key = "sluice:{" + std::string(fleet) + ":src:" + std::to_string(shard) + '}';
    for (size_t i = 0; i < std::size(windows); ++i)
        windows[i] = key + ':' + std::to_string(i);
}

std::string source_limit_name(LeasePool pool, std::string_view service, Dimension dimension,
                              const IpAddress& source) {
    return std::string(pool == LeasePool::enforce ? "enforce/" : "observe/") +
           budget_name(service, dimension) + '/' + source.to_string();
}

redis::Command sources_command(const SourceKeys& keys, uint64_t last_window,
                               std::span<const ToldUse> uses) {
    redis::Command command =
        lua::kSources.call({keys.windows[0], keys.windows[1], keys.windows[2]}).add(last_window);
    for (const ToldUse& use : uses)
        command.add(use.name).add(use.use).add(use.said).add(use.said_before);
    return command;
}

Result<SourcesReply> parse_sources_reply(const redis::Reply& reply, size_t rows) {
    const Error bad =
        make_error(ErrorCode::failed, "Redis's answer about sources is none of sources.lua",
                   "do all hosts of the fleet run the same version of Sluice?");
    const auto elements = reply.as_array();
    if (!elements)
        return elements.error();
    std::vector<uint64_t> numbers;
    for (const redis::Reply& element : *elements) {
        const auto number = element.as_integer();
        if (!number || *number < 0)
            return bad;
        numbers.push_back(static_cast<uint64_t>(*number));
    }
    if (numbers.size() % 3 != 2 || numbers[1] > static_cast<uint64_t>(SourcesOutcome::full))
        return bad;
    SourcesReply parsed{
        .window = numbers[0], .outcome = static_cast<SourcesOutcome>(numbers[1]), .above = {}};
    for (size_t i = 2; i < numbers.size(); i += 3) {
        if (numbers[i] >= rows || numbers[i + 1] == 0)
            return bad;
        parsed.above.push_back({numbers[i], static_cast<double>(numbers[i + 1]) / kUseUnit,
                                static_cast<uint32_t>(numbers[i + 2])});
    }
    return parsed;
}

}  // namespace sluice
