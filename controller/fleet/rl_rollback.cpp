#include "fleet/rl_rollback.h"

#include "rl_rollback.lua.h"

namespace sluice {

redis::Command rl_rollback_command(std::string_view key, std::span<const std::string> words) {
    redis::Command command = lua::kRlRollback.call({key});
    for (const std::string& word : words)
        command.add(word);
    return command;
}

}  // namespace sluice
