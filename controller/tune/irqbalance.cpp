#include "tune/irqbalance.h"

#include <algorithm>
#include <string_view>

#include "base/file.h"
#include "tune/port.h"

namespace sluice {

namespace {

constexpr const char* kPolicyPath = "/etc/sluice/irqbalance-policy";
constexpr const char* kDropInPath = "/etc/systemd/system/irqbalance.service.d/sluice.conf";

constexpr std::string_view kPolicyName = "/irqbalance-policy";
constexpr std::string_view kDropInName = "/irqbalance.conf";

// As one word of the shell, whatever a name holds.
std::string shell_word(std::string_view text) {
    std::string word = "'";
    for (const char c : text)
        word += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return word + '\'';
}

}  // namespace

std::string irqbalance_policy(const std::vector<std::string>& ports) {
    std::string names;
    for (const std::string& port : ports)
        names += ' ' + shell_word(port);
    return R"(#!/bin/sh
# Made by sluicectl tune apply. irqbalance asks for each interrupt: $1 is the device, $2 the number.
# Those of the cards below are placed by Sluice, and are not to be moved.
net=${SLUICE_NET:-/sys/class/net}
for port in)" +
           names +
           R"(; do
    # Those of a virtio device belong to the PCI device above it.
    irqs=$net/$port/device/msi_irqs
    [ -d "$irqs" ] || irqs=$net/$port/device/../msi_irqs
    if [ -e "$irqs/$2" ]; then
        echo ban=true
        exit 0
    fi
done
)";
}

std::string irqbalance_drop_in(const std::string& policy_path) {
    // The packages differ in where options stand, and agree in the variable that holds them.
    return "# Made by sluicectl tune apply.\n"
           "[Service]\n"
           "ExecStart=\n"
           "ExecStart=/usr/sbin/irqbalance --foreground --policyscript=" +
           policy_path + " $IRQBALANCE_ARGS\n";
}

std::vector<std::string> ports_to_leave_alone(const Machine& machine, const JournalFolder& journals,
                                              std::vector<std::string> ports) {
    for (const std::string& interface : journals.interfaces())
        // One that is gone has no interrupts to leave alone.
        if (const auto more = ports_below(machine, interface))
            ports.insert(ports.end(), more->begin(), more->end());
    std::ranges::sort(ports);
    ports.erase(std::ranges::unique(ports).begin(), ports.end());
    return ports;
}

Result<IrqbalanceFiles> write_irqbalance_files(const JournalFolder& journals,
                                               const std::vector<std::string>& ports,
                                               const std::string& folder) {
    IrqbalanceFiles files{.policy = journals.path() + std::string(kPolicyName),
                          .drop_in = journals.path() + std::string(kDropInName),
                          .commands = {}};
    if (const Status written = replace_file(files.policy, irqbalance_policy(ports)); !written)
        return written.error();
    if (const Status written = replace_file(files.drop_in, irqbalance_drop_in(kPolicyPath));
        !written)
        return written.error();
    files.commands = {
        "install -D -m 755 " + folder + std::string(kPolicyName) + ' ' + kPolicyPath,
        "install -D -m 644 " + folder + std::string(kDropInName) + ' ' + kDropInPath,
        "systemctl daemon-reload && systemctl restart irqbalance",
    };
    return files;
}

}  // namespace sluice
