// The plans of known machines against plans/NAME.txt, where the lines with # say why each is right.
// UPDATE_GOLDEN=1 writes the plans anew and keeps those lines, for `git diff` to judge.
#include "tune/plan.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/file.h"
#include "machines.h"
#include "temp_folder.h"

namespace sluice {
namespace {

const std::string kPlans = TUNE_PLANS;

// Those of `tune plan` that the machines use.
TuneSettings wishes_of(const std::string& options) {
    TuneSettings wishes;
    std::istringstream words(options);
    for (std::string name, value; words >> name >> value;) {
        if (name == "--reserve-cores")
            wishes.reserve_cores = static_cast<unsigned>(std::stoul(value));
        else if (value == "flood")
            wishes.profile = TuneProfile::flood;
        else if (value == "latency")
            wishes.profile = TuneProfile::latency;
    }
    return wishes;
}

std::string text_of(const Plan& plan) {
    std::ostringstream text;
    for (const PortPlan& port : plan.ports)
        text << port.name << " (" << port.driver << "): queues " << port.queues << " → "
             << port.queues_wanted << ", cores near it " << port.cores << '\n';
    for (const Change& change : plan.changes)
        text << change.what << ": " << change.before << " → " << change.after << ". " << change.why
             << '\n';
    for (const std::string& caution : plan.cautions)
        text << "careful: " << caution << '\n';
    for (const std::string& note : plan.notes)
        text << "note: " << note << '\n';
    for (const std::string& hindrance : plan.hindrances)
        text << "not possible here: " << hindrance << '\n';
    return text.str();
}

struct Golden {
    std::string reason, plan;
};

Golden golden_of(const std::string& file) {
    Golden golden;
    const auto text = read_file(file);
    std::istringstream lines(text ? *text : std::string());
    for (std::string line; std::getline(lines, line);)
        (line.starts_with('#') ? golden.reason : golden.plan) += line + '\n';
    return golden;
}

Plan plan_of(const TestMachine& known) {
    const TempFolder folder;
    build_machine(known.name, folder.path());
    const auto input = look_at(Machine::captured(folder.path()).value(), known.interface,
                               wishes_of(known.options));
    EXPECT_TRUE(input) << input.error().message;
    return make_plan(*input);
}

TEST(Plans, AreThoseThatWereReviewed) {
    for (const TestMachine& known : test_machines()) {
        const std::string file = kPlans + '/' + known.name + ".txt";
        const Golden golden = golden_of(file);
        const std::string plan = text_of(plan_of(known));
        if (std::getenv("UPDATE_GOLDEN") != nullptr) {
            std::ofstream(file) << golden.reason << plan;
            continue;
        }
        EXPECT_EQ(plan, golden.plan) << known.name;
        EXPECT_FALSE(golden.reason.empty()) << file << ": says nowhere why it is right";
    }
}

TEST(Plans, BelongToMachines) {
    std::set<std::string> machines, files;
    for (const TestMachine& known : test_machines())
        machines.insert(known.name);
    for (const auto& entry : std::filesystem::directory_iterator(kPlans))
        files.insert(entry.path().stem().string());
    EXPECT_EQ(files, machines);
}

}  // namespace
}  // namespace sluice
