#include "fleet/policy_file.h"

#include <sstream>

#include "base/file.h"

namespace sluice {

namespace {

constexpr std::string_view kMagic = "sluice-fleet-policy-1";

}  // namespace

std::optional<FleetVersion> PolicyFile::load(const std::string& fleet) const {
    const auto file = read_file(path_);
    if (!file)
        return std::nullopt;
    const size_t head_end = file->find('\n');
    if (head_end == std::string::npos)
        return std::nullopt;
    std::istringstream head(file->substr(0, head_end));
    std::string magic;
    FleetVersion version;
    size_t bytes = 0;
    head >> magic >> version.fleet >> version.version >> version.since_ms >> version.is_canary >>
        bytes;
    if (!head || magic != kMagic || version.fleet != fleet || version.version == 0)
        return std::nullopt;
    version.text = file->substr(head_end + 1);
    if (version.text.size() != bytes)
        return std::nullopt;
    return version;
}

Status PolicyFile::save(const FleetVersion& version) const {
    std::ostringstream head;
    head << kMagic << ' ' << version.fleet << ' ' << version.version << ' ' << version.since_ms
         << ' ' << version.is_canary << ' ' << version.text.size() << '\n';
    return replace_file(path_, head.str() + version.text);
}

}  // namespace sluice
