// Machines whose right plan is known: plans/NAME.txt says it, and why.
#pragma once

#include <string>
#include <vector>

namespace sluice {

class Tree;

struct TestMachine {
    const char* name;
    const char* interface;
    const char* options;  // of `tune plan`
    void (*build)(Tree& tree);
};

const std::vector<TestMachine>& test_machines();
// Makes `folder` look like the machine of that name.
void build_machine(const std::string& name, const std::string& folder);

}  // namespace sluice
