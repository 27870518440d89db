#include "tune/irqbalance.h"

#include "base/file.h"

namespace sluice {

namespace {

constexpr const char* kPolicyPath = "/etc/sluice/irqbalance-policy";
constexpr const char* kDropInPath = "/etc/systemd/system/irqbalance.service.d/sluice.conf";

}  // namespace

std::string irqbalance_policy(const std::vector<std::string>& ports) {
    std::string names;
    for (const std::string& port : ports)
        names += " '" + port + '\'';
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

Result<IrqbalanceFiles> write_irqbalance_files(const JournalFolder& journals,
                                               const std::vector<std::string>& ports) {
    IrqbalanceFiles files{.policy = journals.path() + "/irqbalance-policy",
                          .drop_in = journals.path() + "/irqbalance.conf",
                          .commands = {}};
    if (const Status written = replace_file(files.policy, irqbalance_policy(ports)); !written)
        return written.error();
    if (const Status written = replace_file(files.drop_in, irqbalance_drop_in(kPolicyPath));
        !written)
        return written.error();
    files.commands = {
        "install -D -m 755 " + files.policy + ' ' + kPolicyPath,
        "install -D -m 644 " + files.drop_in + ' ' + kDropInPath,
        "systemctl daemon-reload && systemctl restart irqbalance",
    };
    return files;
}

}  // namespace sluice
