# Writes HEADER, in which the Lua script SOURCE is a constant; run by sluice_embed_lua().
cmake_path(GET SOURCE STEM name)
file(READ "${SOURCE}" text)
file(SHA1 "${SOURCE}" sha1)

# lease_renew → kLeaseRenew
string(REPLACE "_" ";" words "${name}")
set(constant k)
foreach(word IN LISTS words)
    string(SUBSTRING "${word}" 0 1 initial)
    string(SUBSTRING "${word}" 1 -1 rest)
    string(TOUPPER "${initial}" initial)
    string(APPEND constant "${initial}${rest}")
endforeach()

string(FIND "${text}" ")lua\"" end)
if(NOT end EQUAL -1)
    message(FATAL_ERROR "${SOURCE}: )lua\" would end the text of the script too early")
endif()
file(WRITE "${HEADER}" "// Made of ${name}.lua.
#pragma once

#include \"redis/script.h\"

namespace sluice::lua {

inline constexpr redis::Script ${constant}{
    .name = \"${name}\", .text = R\"lua(${text})lua\", .sha1 = \"${sha1}\"};

}  // namespace sluice::lua
")
