# bpf_object(NAME SOURCE): compiles SOURCE for BPF and yields the target NAME_skel, which carries
# the include path of the generated skeleton NAME.skel.h (struct NAME_bpf: a plain `sluice` is the
# C++ namespace). Headers are tracked by a depfile.
#
# Kernel types come from the uapi headers, so no vmlinux.h of the build machine gets in.

find_program(SLUICE_CLANG NAMES clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14)
find_program(SLUICE_LLVM_STRIP NAMES llvm-strip llvm-strip-19 llvm-strip-18 llvm-strip-17 llvm-strip-16
             llvm-strip-15 llvm-strip-14)
find_program(SLUICE_BPFTOOL bpftool PATHS /usr/sbin /usr/local/sbin)
if(NOT SLUICE_CLANG OR NOT SLUICE_LLVM_STRIP OR NOT SLUICE_BPFTOOL)
    message(FATAL_ERROR "clang, llvm and bpftool are needed to build the BPF programs: scripts/setup build")
endif()

# v3 is the newest instruction set that every supported kernel takes. libbpf's helper headers expect
# the kernel's integer types to be there already, in whatever order a file includes things.
set(SLUICE_BPF_FLAGS
    -target bpf -mcpu=v3 -std=gnu11 -Wall -Wextra -Werror -include linux/types.h
    "-I${PROJECT_SOURCE_DIR}/include" "-I${PROJECT_SOURCE_DIR}/bpf")
if(CMAKE_LIBRARY_ARCHITECTURE)
    list(APPEND SLUICE_BPF_FLAGS -idirafter "/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}")
endif()

function(bpf_object name source)
    cmake_path(ABSOLUTE_PATH source)
    set(folder "${CMAKE_CURRENT_BINARY_DIR}")
    set(object "${folder}/${name}.bpf.o")
    set(skeleton "${folder}/${name}.skel.h")

    add_custom_command(
        OUTPUT "${object}"
        COMMAND "${SLUICE_CLANG}" -O2 -g ${SLUICE_BPF_FLAGS}
                -MD -MT "${object}" -MF "${object}.d" -c "${source}" -o "${object}"
        # Away with DWARF, which would be most of the skeleton; BTF stays.
        COMMAND "${SLUICE_LLVM_STRIP}" -g "${object}"
        DEPENDS "${source}"
        DEPFILE "${object}.d"
        COMMENT "Building BPF object ${name}.bpf.o"
        VERBATIM)
    add_custom_command(
        OUTPUT "${skeleton}"
        COMMAND "${SLUICE_BPFTOOL}" gen skeleton "${object}" name "${name}_bpf" > "${skeleton}.new"
        COMMAND "${CMAKE_COMMAND}" -E rename "${skeleton}.new" "${skeleton}"
        DEPENDS "${object}"
        COMMENT "Generating BPF skeleton ${name}.skel.h"
        VERBATIM)

    add_custom_target(${name}_skel_header DEPENDS "${skeleton}")
    add_library(${name}_skel INTERFACE)
    add_dependencies(${name}_skel ${name}_skel_header)
    target_include_directories(${name}_skel SYSTEM INTERFACE "${folder}")
    target_link_libraries(${name}_skel INTERFACE PkgConfig::libbpf)
endfunction()
