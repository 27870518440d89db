#include "cli/enforcement.h"

#include "gate/switches.h"

namespace sluice::cli {

Enforcement enforcement_of(Mode mode, const std::vector<Attachment>& attached) {
    Enforcement found{.mode = mode, .acts = false, .idle = {}};
    for (const Attachment& attachment : attached) {
        found.acts = found.acts || attachment.acts();
        if (!attachment.acts())
            found.idle.push_back(why_idle(attachment));
    }
    if (attached.empty())
        found.idle.emplace_back("attached nowhere: nothing is looked at; sluicectl attach IFACE");
    return found;
}

Result<Enforcement> enforcement_of(const Tables& tables) {
    const auto mode = mode_of(tables, WholeGate{});
    if (!mode)
        return mode.error();
    const auto attached = attachments(tables);
    if (!attached)
        return attached.error();
    return enforcement_of(*mode, *attached);
}

Result<bool> is_enforced(const Tables& tables, std::vector<std::string>& warnings) {
    const auto found = enforcement_of(tables);
    if (!found)
        return found.error();
    if (found->mode != Mode::enforce)
        warnings.push_back("not enforced: the gate is in mode " +
                           std::string(mode_name(found->mode)) + "; sluicectl mode enforce");
    for (const std::string& why : found->idle)
        warnings.push_back("not enforced: " + why);
    return found->drops();
}

}  // namespace sluice::cli
