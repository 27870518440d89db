// sluicectl risk: who is scored, and why bans by scores have stopped.
#include "cli/command_line.h"
#include "cli/format.h"
#include "risk/member_source.h"

namespace sluice::cli {

namespace {

// Of the list, for people and machines alike: the highest.
constexpr size_t kMostListed = 1'000;
// What no writer of scores comes to by counting.
constexpr double kMostAdded = 1e6;

struct AddOptions {
    std::string address;
    double amount = 0;
    std::string reason;
};

Result<RiskDesk*> desk_of(const Session& session) {
    if (session.risk == nullptr)
        return make_error(ErrorCode::unreachable, "sluiced does not answer, and scores are in it",
                          "start sluiced; to ban by hand: sluicectl ban");
    return session.risk;
}

Result<IpAddress> parse_address(const std::string& text) {
    const auto address = IpAddress::parse(text);
    if (!address)
        return make_error(ErrorCode::usage, address.error().message, address.error().hint);
    return *address;
}

double seconds_of(uint64_t ms) {
    return static_cast<double>(ms) / 1000;
}

Json entry_json(const RiskEntry& entry) {
    const SourceScore& score = entry.score;
    const bool is_banned = score.banned_until_ms > entry.now_ms;
    const bool for_good = score.banned_until_ms == SourceScore::kForGood;
    return {
        {"source", entry.source.to_string()},
        {"score", score.score},
        {"scope", entry.is_fleet ? "fleet" : "host"},
        {"since_s", seconds_of(entry.now_ms - std::min(entry.now_ms, score.since_ms))},
        {"times", score.times},
        {"banned", is_banned},
        {"expires_in_s",
         is_banned && !for_good ? Json(seconds_of(score.banned_until_ms - entry.now_ms)) : Json()},
        {"waits", score.is_queued}};
}

Json fleet_json(const RiskStanding& standing) {
    if (!standing.fleet)
        return {};
    const FleetRiskStanding& fleet = *standing.fleet;
    Json json = {{"leads", fleet.leads},
                 {"leader", fleet.leader.empty() ? Json() : Json(fleet.leader)},
                 {"error", fleet.error.empty() ? Json() : Json(fleet.error)}};
    if (fleet.leads)
        json.update({{"read", fleet.is_read},
                     {"pass_s", static_cast<double>(fleet.pass.count()) / 1000},
                     {"members", fleet.members},
                     {"identities", fleet.identities},
                     {"unreadable", fleet.unreadable},
                     {"no_room", fleet.no_room},
                     {"scored", fleet.scored},
                     {"bans", fleet.counts.bans},
                     {"spared", fleet.counts.spared},
                     {"waiting", fleet.counts.waiting}});
    return json;
}

Result<Answer> list(const Session& session) {
    const auto desk = desk_of(session);
    if (!desk)
        return desk.error();
    const RiskStanding standing = (*desk)->standing();
    Answer answer;
    Json sources = Json::array();
    for (const RiskEntry& entry : (*desk)->highest(kMostListed))
        sources.push_back(entry_json(entry));
    const std::string stop = standing.stop_reason();
    if (!stop.empty())
        answer.warnings.push_back("no more bans: " + stop +
                                  "; if those were right: sluicectl risk release");
    answer.data = {{"on", standing.is_on},
                   {"stopped", stop.empty() ? Json() : Json(stop)},
                   {"error", standing.error.empty() ? Json() : Json(standing.error)},
                   {"bans", standing.counts.bans},
                   {"spared", standing.counts.spared},
                   {"waiting", standing.counts.waiting},
                   {"verified", standing.verified},
                   {"fleet", fleet_json(standing)},
                   {"sources", std::move(sources)}};
    return answer;
}

std::string fleet_text(const Json& fleet) {
    if (!fleet["error"].is_null())
        return "not read: " + fleet["error"].get<std::string>();
    if (fleet["leads"] && !fleet["read"])
        return "led by this host, which reads it for the first time";
    if (fleet["leads"])
        return "led by this host: " + format_count(fleet["members"]) + " members, of which " +
               format_count(fleet["identities"]) + " are users or devices and " +
               format_count(fleet["unreadable"]) + " make no sense; read in " +
               format_seconds(fleet["pass_s"]);
    return fleet["leader"].is_null() ? "led by nobody"
                                     : "led by host " + fleet["leader"].get<std::string>();
}

std::string state_text(const Json& source) {
    if (source["banned"])
        return "banned, ends " + format_expiry(source["expires_in_s"]);
    return source["waits"] ? "waits" : "";
}

void show_list(const Json& data, Screen& screen) {
    if (!data["on"]) {
        screen.line("Nobody is scored: the policy in force has no [risk].");
        return;
    }
    if (!data["fleet"].is_null())
        screen.line("The fleet's set is " + fleet_text(data["fleet"]) + ".");
    if (data["sources"].empty()) {
        screen.line("No source has a score.");
        return;
    }
    std::vector<Row> rows;
    for (const Json& source : data["sources"])
        rows.push_back({{source["source"].get<std::string>(), Style::strong},
                        {format_short(source["score"])},
                        {source["scope"].get<std::string>()},
                        {format_seconds(source["since_s"])},
                        {format_count(source["times"])},
                        {state_text(source)}});
    screen.table({{"SOURCE"}, {"SCORE", true}, {"SCORED BY"}, {"SINCE"}, {"BANS", true}, {"STATE"}},
                 rows);
}

Result<Answer> add(const AddOptions& options, const Session& session) {
    const auto address = parse_address(options.address);
    if (!address)
        return address.error();
    if (!(options.amount > 0 && options.amount <= kMostAdded))
        return make_error(ErrorCode::usage, "N is out of range",
                          "use a number above 0 and up to " + format_count(1'000'000));
    const auto desk = desk_of(session);
    if (!desk)
        return desk.error();
    if (!(*desk)->standing().is_on)
        return (*desk)->add(*address, 0).error();
    Answer answer;
    const Prefix source = risk_source(*address);
    session.record({"risk add", source.to_string(), "", "score +" + format_short(options.amount),
                    options.reason},
                   answer.warnings);
    const auto score = (*desk)->add(*address, options.amount);
    if (!score)
        return score.error();
    session.made();
    answer.changed = true;
    answer.data = {{"source", source.to_string()}, {"score", score->score}};
    return answer;
}

void show_add(const Json& data, Screen& screen) {
    screen.line(data["source"].get<std::string>() + " has a score of " +
                format_short(data["score"]) + " now.");
}

Result<Answer> clear(const std::string& text, const Session& session) {
    const auto address = parse_address(text);
    if (!address)
        return address.error();
    const auto desk = desk_of(session);
    if (!desk)
        return desk.error();
    Answer answer;
    const Prefix source = risk_source(*address);
    session.record({"risk clear", source.to_string(), "", "no score", ""}, answer.warnings);
    const auto cleared = (*desk)->clear(*address);
    if (!cleared)
        return cleared.error();
    if (!*cleared && (!(*desk)->standing().fleet || (*desk)->standing().fleet->leads))
        return make_error(ErrorCode::not_found, source.to_string() + " has no score",
                          "see: sluicectl risk");
    session.made();
    answer.changed = true;
    answer.data = {{"source", source.to_string()}};
    return answer;
}

void show_clear(const Json& data, Screen& screen) {
    const std::string source = data["source"].get<std::string>();
    screen.line("The score of " + source + " is forgotten, and how often it was banned.");
    screen.line("A ban that stands goes on: sluicectl unban " + source + " --source risk");
}

Result<Answer> release(bool forget, const Session& session) {
    const auto desk = desk_of(session);
    if (!desk)
        return desk.error();
    Answer answer;
    const std::string stop = (*desk)->standing().stop_reason();
    session.record({"risk release", "", stop.empty() ? "" : "stopped: " + stop,
                    forget ? "bans go on, but for those who were due" : "bans go on", ""},
                   answer.warnings);
    if (const Status released = (*desk)->release(forget); !released)
        return released.error();
    session.made();
    answer.changed = true;
    answer.data = {{"was_stopped", stop.empty() ? Json() : Json(stop)}};
    return answer;
}

void show_release(const Json& data, Screen& screen) {
    screen.line(data["was_stopped"].is_null()
                    ? "Bans had not stopped here; what had stopped elsewhere in the fleet goes on."
                    : "Bans by scores go on.");
}

}  // namespace

void add_risk(CommandLine& line) {
    CLI::App* app = line.add("risk", "Scores of sources, and the bans that follow from them");
    app->require_subcommand(0, 1);
    line.handle(app, list, show_list);
    line.handle(line.add("list", "Who is scored, the highest first", app), list, show_list);

    CLI::App* more = line.add("add", "Add to the score of a source", app);
    auto options = std::make_shared<AddOptions>();
    more->add_option("address", options->address, "Of the source")->required()->type_name("ADDR");
    more->add_option("amount", options->amount, "How much")->required()->type_name("N");
    more->add_option("--reason", options->reason, "For the audit log");
    line.handle(
        more, [options](const Session& session) { return add(*options, session); }, show_add);

    CLI::App* less = line.add("clear", "Forget the score of a source", app);
    auto address = std::make_shared<std::string>();
    less->add_option("address", *address, "Of the source")->required()->type_name("ADDR");
    line.handle(
        less, [address](const Session& session) { return clear(*address, session); }, show_clear);

    CLI::App* go_on = line.add("release", "Go on after too many bans", app);
    auto forget = std::make_shared<bool>(false);
    go_on->add_flag("--forget", *forget, "Those who are due begin anew, and are not banned now");
    line.handle(
        go_on, [forget](const Session& session) { return release(*forget, session); },
        show_release);
}

}  // namespace sluice::cli
