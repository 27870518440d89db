#include "fleet/host_identity.h"

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cstdio>

namespace sluice {

std::string host_id(const Tables& tables) {
    const auto& id = tables.settings().host_id;
    if (id[0] == 0)
        return {};
    std::array<char, 33> text{};
    (void)std::snprintf(text.data(), text.size(), "%016llx%016llx", id[0], id[1]);
    return text.data();
}

void draw_host_id(Tables& tables) {
    auto& id = tables.settings().host_id;
    // Zero would mean that there is none.
    while (::getrandom(id, sizeof(id), 0) != sizeof(id) || id[0] == 0) {
    }
}

std::string machine_name() {
    std::array<char, 65> name{};
    (void)::gethostname(name.data(), name.size() - 1);
    return name.data();
}

}  // namespace sluice
