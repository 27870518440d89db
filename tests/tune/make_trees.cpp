// Makes every test machine below a folder, and says how each is to be planned: "NAME IFACE
// OPTION...".
#include <cstdio>

#include "machines.h"

int main(int count, char** arguments) {
    if (count != 2) {
        (void)std::fputs("usage: tune_trees DIR\n", stderr);
        return 2;
    }
    for (const sluice::TestMachine& machine : sluice::test_machines()) {
        sluice::build_machine(machine.name, std::string(arguments[1]) + '/' + machine.name);
        (void)std::printf("%s %s %s\n", machine.name, machine.interface, machine.options);
    }
    return 0;
}
