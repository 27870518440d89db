// Lua that runs inside Redis. Scripts are .lua files; sluice_embed_lua() in CMake makes them
// constants of this type: NAME.lua becomes `lua::kName` in "NAME.lua.h".
#pragma once

#include <initializer_list>
#include <string_view>

#include "redis/command.h"

namespace sluice::redis {

struct Script {
    std::string_view name;  // for people
    std::string_view text;
    std::string_view sha1;  // of the text, 40 hex digits

    // EVALSHA with these keys; arguments are added to the command. The script must outlive it.
    [[nodiscard]] Command call(std::initializer_list<std::string_view> keys) const;
};

}  // namespace sluice::redis
