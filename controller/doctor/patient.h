// All that the checks look at, taken once, so that they agree with each other.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "doctor/redis_look.h"
#include "gate/attachment.h"
#include "gate/policy_store.h"
#include "gate/tables.h"
#include "net/interface.h"
#include "operate/operator.h"
#include "tune/machine.h"
#include "tune/measure.h"
#include "tune/plan.h"

namespace sluice {

struct PatientOptions {
    std::vector<std::string> interfaces;  // empty: those that are attached or configured, else the
                                          // one of the default route
    std::string pin_dir, socket, state_dir;
    std::string config;  // the policy's file, where no gate has one
    Operator who;
};

// A network card, and what runs on it.
struct Card {
    Interface interface;
    Result<PlanInput> tuning = failed("not looked at");  // of the cards below it
    std::optional<Attachment> attachment;                // of the gate
};

struct Patient {
    PatientOptions options;
    Machine machine = Machine::live();
    Result<Host> host = failed("not looked at");
    Result<std::shared_ptr<Tables>> gate = failed("not looked at");
    std::vector<Attachment> attachments;
    std::optional<Policy> policy;       // in force, or to be by the file
    std::optional<uint64_t> applied_s;  // when it was put in force; since 1970
    std::optional<Error> config_error;  // of the file
    std::vector<Card> cards;
    std::optional<RedisLook> redis;  // where the policy names one
    Rates rates;                     // over a moment
};

// ErrorCode::not_found where a named interface does not exist. Takes half a second: it measures.
Result<Patient> look_at_patient(const PatientOptions& options);

// There may be a gate, and this user is not to know.
bool may_not_see_gate(const Patient& patient);
// The command by which somebody who may see the rest looks at the same interfaces.
std::string doctor_as_root(const Patient& patient);

// Whether this process may do what CAP_… number `capability` allows.
bool has_capability(const Machine& machine, unsigned capability);

}  // namespace sluice
