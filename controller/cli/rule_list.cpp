#include "cli/rule_list.h"

#include "cli/ban_checks.h"
#include "cli/enforcement.h"
#include "cli/format.h"

namespace sluice::cli {

namespace {

std::string note_on_ban(const Json& ban) {
    if (ban["overruled"])
        return "passes: allowed or protected";
    return ban["forced"] ? "forced" : "";
}

// Everybody else waits meanwhile: a tenth of a second. Root reads the tables by himself.
constexpr size_t kMostOfDaemon = 10'000;

}  // namespace

Result<Answer> list_rules(const Session& session, const RuleQuery& query) {
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    Tables& tables = **gate;
    const bool bans = query.kind == RuleKind::ban;
    SourceRules rules(tables);
    if (query.source)
        if (const Status known = check_list(rules, *query.source); !known)
            return known.error();
    const bool shared = session.heavy != nullptr;
    const size_t limit =
        shared && (query.limit == 0 || query.limit > kMostOfDaemon) ? kMostOfDaemon : query.limit;
    const auto found = rules.list(
        query.kind, query.source ? std::optional<std::string_view>(*query.source) : std::nullopt,
        limit);
    if (!found)
        return found.error();
    const uint64_t now_ns = gate_now_ns(tables);
    Json list = Json::array();
    for (const ListedRule& rule : found->rules) {
        Json entry = {{"prefix", rule.prefix.to_string()},
                      {"source", source_of(rule.list)},
                      {"fleet", is_fleet_list(rule.list)},
                      {"expires_in_s", seconds_until(rule.until_ns, now_ns)},
                      {"since", format_time(rule.since_s)},
                      {"actor", rule.actor},
                      {"reason", rule.reason}};
        entry[bans ? "forced" : "exempt"] = bans ? rule.forced : rule.exempt;
        if (bans)
            entry["overruled"] = rule.overruled;
        list.push_back(std::move(entry));
    }
    Answer answer;
    answer.data[bans ? "bans" : "allows"] = std::move(list);
    answer.data["total"] = found->total;
    if (shared && limit != query.limit && found->total > limit)
        answer.warnings.push_back("the daemon lists " + format_count(limit) +
                                  " at most; root sees all of them");
    if (!bans || found->rules.empty())
        return answer;
    if (const auto enforced = is_enforced(tables, answer.warnings); !enforced)
        return enforced.error();
    return answer;
}

void show_rules(const Json& data, Screen& screen) {
    const bool bans = data.contains("bans");
    const Json& list = data[bans ? "bans" : "allows"];
    if (list.empty()) {
        screen.line(bans ? "No bans." : "No allows.");
        return;
    }
    std::vector<Row> rows;
    for (const Json& rule : list)
        rows.push_back({{rule["prefix"].get<std::string>()},
                        {rule["source"].get<std::string>() + (rule["fleet"] ? " (fleet)" : "")},
                        {format_expiry(rule["expires_in_s"])},
                        {rule["since"].get<std::string>()},
                        {rule["actor"].get<std::string>()},
                        {bans             ? note_on_ban(rule)
                         : rule["exempt"] ? "exempt"
                                          : ""},
                        {rule["reason"].get<std::string>()}});
    screen.table({{"PREFIX"}, {"SOURCE"}, {"ENDS"}, {"SINCE"}, {"BY"}, {"NOTE"}, {"REASON"}}, rows);
    const auto total = data["total"].get<uint64_t>();
    if (total > list.size())
        screen.line("… and " + format_count(total - list.size()) + " more: --limit 0 shows all");
}

}  // namespace sluice::cli
