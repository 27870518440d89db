# Libraries found through pkg-config, as imported targets PkgConfig::libbpf and PkgConfig::libxdp.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(libbpf REQUIRED IMPORTED_TARGET libbpf>=1.1)
pkg_check_modules(libxdp REQUIRED IMPORTED_TARGET libxdp>=1.3)
