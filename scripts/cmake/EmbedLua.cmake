# sluice_embed_lua(TARGET FILE.lua…): makes "FILE.lua.h" for the sources of TARGET, in which FILE is
# a constant: lease_renew.lua becomes sluice::lua::kLeaseRenew, a sluice::redis::Script.
#
# A script is known to Redis by the SHA-1 of its text, which is computed here, once.

set(SLUICE_EMBED_LUA "${CMAKE_CURRENT_LIST_DIR}/embed_lua.cmake")

function(sluice_embed_lua target)
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/lua")
    foreach(source IN LISTS ARGN)
        cmake_path(ABSOLUTE_PATH source)
        cmake_path(GET source FILENAME file)
        set(header "${folder}/${file}.h")
        add_custom_command(
            OUTPUT "${header}"
            COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${source}" "-DHEADER=${header}" -P "${SLUICE_EMBED_LUA}"
            DEPENDS "${source}" "${SLUICE_EMBED_LUA}"
            COMMENT "Embedding ${file}"
            VERBATIM)
        target_sources(${target} PRIVATE "${header}")
    endforeach()
    target_include_directories(${target} PRIVATE "${folder}")
endfunction()
