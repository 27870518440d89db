# Language level, warnings, default build type and compiler cache for everything in the project.

option(SLUICE_WERROR "Treat compiler warnings as errors" OFF)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_compile_options(-Wall -Wextra -Wshadow -Wconversion)
# GCC 12, Debian 12's, takes a string set to a short literal for an overlapping copy once it is
# inlined (GCC bug 105329, mended in 13).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
set(CMAKE_COMPILE_WARNING_AS_ERROR ${SLUICE_WERROR})

find_program(SLUICE_CCACHE ccache)
if(SLUICE_CCACHE)
    foreach(language IN ITEMS C CXX)
        if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
            set(CMAKE_${language}_COMPILER_LAUNCHER "${SLUICE_CCACHE}")
        endif()
    endforeach()
endif()
