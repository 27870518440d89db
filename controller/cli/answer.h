// What a command hands back: data for machines, from which the text for people is made.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sluice::cli {

// Keeps the order in which keys are set: what matters most comes first.
using Json = nlohmann::ordered_json;

struct Answer {
    Json data = Json::object();
    std::vector<std::string> warnings;  // to stderr; in JSON "warnings" within the data
    bool quiet = false;                 // no text on success
    bool changed = false;               // what was asked for is done, whoever gets to read it
    int exit_code = 0;                  // where the answer is whole, and what it says is bad
};

// {"ok":true,"data":…}
Json to_json(const Answer& answer);

}  // namespace sluice::cli
