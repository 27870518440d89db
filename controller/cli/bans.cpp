// sluicectl bans: list them, import a file of them, flush a list of them.
#include <cctype>
#include <filesystem>

#include "base/text.h"
#include "cli/ban_checks.h"
#include "cli/command_line.h"
#include "cli/enforcement.h"
#include "cli/format.h"
#include "cli/rule_list.h"
#include "gate/list_file.h"
#include "gate/source_rules.h"
#include "operate/protected_sources.h"

namespace sluice::cli {

namespace {

struct ListOptions {
    std::optional<std::string> source;
    std::optional<std::string> limit;  // absent: as much as people read, everything for machines
};

struct ImportOptions {
    std::string file;
    std::string format = "auto";
    std::string ttl = "permanent";
    std::optional<std::string> source;
    bool force = false;
    bool dry_run = false;
};

constexpr std::string_view kStdin = "-";

// "/var/lib/sluice/drop_v4.json" becomes "drop-v4": what people would call the list.
std::string name_from(const std::string& path) {
    if (path == kStdin)
        return "stdin";
    std::string name = std::filesystem::path(path).stem().string();
    for (char& c : name) {
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        if (std::isalnum(static_cast<unsigned char>(c)) == 0)
            c = '-';
    }
    return name.substr(0, SLUICE_NAME_BYTES - 1);
}

// The list's name, as written or from the file's.
Result<std::string> list_name(const ImportOptions& options) {
    if (options.file.empty())
        return make_error(ErrorCode::usage, "FILE is empty", "name the file with the list");
    const std::string name = options.source.value_or(name_from(options.file));
    if (const Status usable = check_source(name); !usable)
        return options.source
                   ? usable.error()
                   : make_error(ErrorCode::usage,
                                "the name of the file makes no name of a list: " + in_quotes(name),
                                "give the list another one: --source NAME");
    return name;
}

Result<ListFile> read_list(const ImportOptions& options) {
    const auto format = parse_list_format(options.format);
    if (!format)
        return make_error(ErrorCode::usage, "--format: " + format.error().message,
                          format.error().hint);
    return read_list_file(options.file == kStdin ? "/dev/stdin" : options.file, *format,
                          options.force);
}

// "10.0.0.0/8, 127.0.0.0/8 and 3 more"
std::string names(const std::vector<Prefix>& named, size_t count) {
    std::string text;
    for (const Prefix& prefix : named)
        text += (text.empty() ? "" : ", ") + prefix.to_string();
    const size_t more = count - named.size();
    return more == 0 ? text : text + " and " + format_count(more) + " more";
}

void warn_about(const ListFile& list, std::vector<std::string>& warnings) {
    for (const RefusedLine& line : list.refused_lines)
        warnings.push_back("line " + std::to_string(line.line) + " left out: " + line.why +
                           (line.why.find(line.text) == std::string::npos ? ": " + line.text : ""));
    if (list.refused > list.refused_lines.size())
        warnings.push_back(plural(list.refused - list.refused_lines.size(), "more line") +
                           " left out");
    if (list.host_bits_cleared != 0)
        warnings.push_back(plural(list.host_bits_cleared, "prefix") + " had host bits set");
    if (list.reserved != 0)
        warnings.push_back(
            names(list.reserved_prefixes, list.reserved) +
            ": private, loopback or otherwise reserved, which is no reason to spare them; "
            "to spare one: sluicectl allow " +
            list.reserved_prefixes.front().to_string());
}

void warn_about(const ImportOutcome& outcome, std::vector<std::string>& warnings) {
    const auto refused = [&](const Refusals& some, std::string_view why) {
        if (some.count != 0)
            warnings.push_back("not banned: " + names(some.named, some.count) + ": " +
                               std::string(why));
    };
    refused(outcome.allowed, "an allow covers them");
    refused(outcome.protected_, "protected; --force insists");
    refused(outcome.too_wide, "too wide to be banned by mistake; --force insists");
}

Result<Answer> import(const ImportOptions& options, const Session& session) {
    const auto ttl = parse_ttl(options.ttl);
    if (!ttl)
        return ttl.error();
    const auto named = list_name(options);
    if (!named)
        return named.error();
    const std::string& source = *named;
    const auto list = read_list(options);
    if (!list)
        return list.error();
    auto gate = session.open_to_write();
    if (!gate)
        return gate.error();
    std::vector<RuleEntry> entries;
    for (const Prefix& prefix : list->prefixes) {
        const auto own = list->lasting.find(prefix);
        entries.push_back(
            {.prefix = prefix, .ttl = own != list->lasting.end() ? Ttl(own->second) : *ttl});
    }
    const Operator& who = session.who;
    SourceRules rules(gate->tables);
    if (!options.dry_run)
        if (const Status guarded = refresh_protection(gate->tables, rules, who); !guarded)
            return guarded.error();
    Answer answer;
    if (!options.dry_run)
        session.record({"bans import", source, "", plural(entries.size(), "entry"), options.file},
                       answer.warnings);
    const auto outcome = rules.import(
        source, entries,
        {.reason = "imported from " + (options.file == kStdin ? "stdin" : options.file),
         .actor = who.to_string(),
         .forced = options.force,
         .rehearse = options.dry_run});
    if (!outcome)
        return outcome.error();
    session.made();
    answer.changed = !options.dry_run;
    warn_about(*list, answer.warnings);
    warn_about(*outcome, answer.warnings);
    if (const Status looked = warn_of_own_ban(rules, who, answer.warnings); !looked)
        return looked.error();
    const auto enforced = is_enforced(gate->tables, answer.warnings);
    if (!enforced)
        return enforced.error();
    answer.data = {{"source", source},
                   {"read", list->prefixes.size() + list->refused},
                   {"added", outcome->added},
                   {"changed", outcome->changed},
                   {"unchanged", outcome->unchanged},
                   {"duplicates", list->duplicates + outcome->duplicates},
                   {"refused", list->refused + outcome->allowed.count + outcome->protected_.count +
                                   outcome->too_wide.count},
                   {"ttl_s", seconds(*ttl)},
                   {"with_own_time", list->lasting.size()},
                   {"enforced", *enforced && !options.dry_run},
                   {"dry_run", options.dry_run}};
    return answer;
}

std::string how_long(const Json& data) {
    const std::string ttl = data["ttl_s"].is_null()
                                ? ", permanently"
                                : ", for " + format_seconds(data["ttl_s"].get<double>());
    return data["with_own_time"] == 0 ? ttl : ttl + " where the list gives no time";
}

void show_import(const Json& data, Screen& screen) {
    const auto count = [&](const char* key) { return data[key].get<uint64_t>(); };
    const bool dry_run = data["dry_run"];
    screen.line((dry_run ? "Would ban " : "Banned ") + format_count(count("added")) + " of " +
                plural(count("read"), "entry") + " as list " + data["source"].get<std::string>() +
                how_long(data) + "; " + format_count(count("unchanged")) +
                (dry_run ? " are banned already, " : " were banned already, ") +
                format_count(count("changed")) + (dry_run ? " would change, " : " changed, ") +
                format_count(count("refused")) + " refused.");
}

Result<Answer> list(const ListOptions& options, const Session& session) {
    constexpr size_t kReadable = 100;
    size_t limit = session.json ? 0 : kReadable;
    if (options.limit) {
        const auto wanted = parse_count("--limit", *options.limit);
        if (!wanted)
            return wanted.error();
        limit = *wanted;
    }
    return list_rules(session, {RuleKind::ban, options.source, limit});
}

Result<Answer> flush(const std::string& source, const Session& session) {
    if (is_reserved_list(source))
        return make_error(ErrorCode::usage, in_quotes(source) + " is kept by Sluice itself");
    auto gate = session.open_to_write();
    if (!gate)
        return gate.error();
    SourceRules rules(gate->tables);
    if (const Status known = check_list(rules, source); !known)
        return known.error();
    Answer answer;
    session.record({"bans flush", source, "", "", ""}, answer.warnings);
    const auto removed = rules.flush(source);
    if (!removed)
        return removed.error();
    answer.changed = *removed != 0;
    answer.data = {{"source", source}, {"removed", *removed}};
    return answer;
}

void show_flush(const Json& data, Screen& screen) {
    screen.line("Removed " + plural(data["removed"].get<uint64_t>(), "ban") + " of " +
                data["source"].get<std::string>() + '.');
}

}  // namespace

void add_bans(CommandLine& line) {
    auto options = std::make_shared<ListOptions>();
    CLI::App* app = line.add("bans", "List what is banned; import or flush a list");
    app->require_subcommand(0, 1);
    app->add_option("--source", options->source, "Only this list's bans")->type_name("NAME");
    app->add_option("--limit", options->limit,
                    "At most so many, 0: all; default: 100, with --json all")
        ->type_name("N");
    line.handle(
        app, [options](const Session& session) { return list(*options, session); }, show_rules);

    auto import_options = std::make_shared<ImportOptions>();
    CLI::App* importing = line.add("import", "Ban all that a file lists", app);
    importing->add_option("FILE", import_options->file, "A block list; - for stdin")->required();
    importing->add_option("--format", import_options->format, "auto, plain, spamhaus or firehol")
        ->type_name("FORMAT")
        ->capture_default_str();
    importing
        ->add_option("--ttl", import_options->ttl,
                     "How long, or permanent, where the file does not say")
        ->type_name("TIME")
        ->capture_default_str();
    importing->add_option("--source", import_options->source, "The list; default: the file's name")
        ->type_name("NAME");
    importing->add_flag("--force", import_options->force, "Even what is protected, or very wide");
    importing->add_flag("--dry-run", import_options->dry_run,
                        "Say what would change, and change nothing");
    line.handle(
        importing,
        [import_options](const Session& session) { return import(*import_options, session); },
        show_import);

    auto source = std::make_shared<std::string>();
    CLI::App* flushing = line.add("flush", "Take back all bans of one list", app);
    flushing->add_option("--source", *source, "The list")->type_name("NAME")->required();
    line.handle(
        flushing, [source](const Session& session) { return flush(*source, session); }, show_flush);
}

}  // namespace sluice::cli
