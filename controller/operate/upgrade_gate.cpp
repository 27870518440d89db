#include "operate/upgrade_gate.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <vector>

#include "gate/attachment.h"
#include "gate/source_rules.h"
#include "gate/xdp_link.h"
#include "operate/apply_policy.h"
#include "operate/gate_access.h"
#include "operate/protected_sources.h"
#include "operate/table_needs.h"

namespace sluice {

namespace {

// The BPF file system takes no dots.
std::string next_dir(const std::string& pin_dir) {
    return pin_dir + "-next";
}
std::string old_dir(const std::string& pin_dir) {
    return pin_dir + "-old";
}

bool is_there(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0;
}

// Also pins that this version has no name for.
void remove_directory(const std::string& path) {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
}

// All of them, also those that hold nothing any more because their interface is gone.
std::vector<std::string> links_in(const std::string& pin_dir) {
    std::vector<std::string> links;
    std::error_code ignored;
    for (const auto& pin : std::filesystem::directory_iterator(pin_dir, ignored))
        if (pin.path().filename().string().starts_with("link_"))
            links.push_back(pin.path().string());
    std::sort(links.begin(), links.end());
    return links;
}

// What the host and the policy bring again by themselves is not taken over.
bool is_from_elsewhere(RuleKind kind, const std::string& list) {
    return list != kGrace && list != kRlList &&
           (is_reserved_list(list) || kind == RuleKind::protect || kind == RuleKind::classify);
}

// Nothing where the old listing cannot be read by this version.
std::optional<KeptRules> rules_of(const std::string& pin_dir, uint64_t now_ns) {
    const auto old = Tables::open_listing(pin_dir);
    auto kept = old ? kept_rules(*old, now_ns) : old.error();
    if (!kept)
        return std::nullopt;
    std::erase_if(kept->rules, [&](const KeptRule& rule) {
        return is_from_elsewhere(rule.entry.kind, kept->origins[rule.origin].list);
    });
    return *std::move(kept);
}

Result<size_t> fill(Tables& tables, const UpgradeOptions& options) {
    SourceRules rules(tables);
    if (const Status guarded = protect_host(tables, rules, options.who); !guarded)
        return guarded.error().with_context("protected set");
    if (const auto applied = apply_policy(tables, *options.config, {}, options.who); !applied)
        return applied.error();
    const auto kept = rules_of(options.pin_dir, gate_now_ns(tables));
    options.restore(tables, kept.has_value());
    return kept ? SourceRules(tables).restore(*kept) : Result<size_t>(0);
}

// Those that an upgrade which was cut off has left, where interfaces hang on them already.
Result<Tables> tables_in(const std::string& next, const UpgradeOptions& options,
                         UpgradeReport& report) {
    if (!links_in(next).empty())
        return open_gate(next);
    remove_directory(next);
    const auto sizes = affordable_sizes(options.config->policy);
    if (!sizes)
        return sizes.error();
    auto tables = Tables::create(next, *sizes);
    if (!tables)
        return tables;
    const auto rules = fill(*tables, options);
    if (!rules)
        return rules.error();
    report.rules = *rules;
    return tables;
}

// At every moment there is a directory of that name, where the kernel can swap two (5.16).
Status swap_directories(const std::string& pin_dir, const std::string& next) {
    if (::renameat2(AT_FDCWD, next.c_str(), AT_FDCWD, pin_dir.c_str(), RENAME_EXCHANGE) == 0)
        return {};
    const std::string old = old_dir(pin_dir);
    if (::rename(pin_dir.c_str(), old.c_str()) != 0 || ::rename(next.c_str(), pin_dir.c_str()) != 0)
        return from_errno(errno, "move " + next + " to " + pin_dir);
    return {};
}

}  // namespace

Result<UpgradeReport> upgrade_gate(const UpgradeOptions& options) {
    const auto lock = lock_gate(options.pin_dir, options.timeout);
    if (!lock)
        return lock.error();
    const std::string next = next_dir(options.pin_dir);
    const auto links = links_in(options.pin_dir);
    if (links.empty() && links_in(next).empty())
        return failed("the gate in " + options.pin_dir +
                          " is of another version and hangs on no link of its own",
                      "detach it with the version that attached it; or take it off with "
                      "xdp-loader unload, and: rm -r " +
                          options.pin_dir);
    UpgradeReport report;
    auto tables = tables_in(next, options, report);
    for (size_t i = 0; tables && i < links.size(); ++i) {
        if (link_interface(links[i]) == 0)
            continue;
        if (const auto taken = take_over(*tables, links[i]); !taken)
            tables = taken.error();
    }
    if (!tables) {
        // With an interface on it, it stays, to go on from there.
        if (links_in(next).empty())
            remove_directory(next);
        return tables.error();
    }
    if (const auto all = attachments(*tables))
        for (const Attachment& attachment : *all)
            report.interfaces.push_back(attachment.interface);
    if (const Status swapped = swap_directories(options.pin_dir, next); !swapped)
        return swapped.error();
    finish_upgrade(options.pin_dir);
    return report;
}

void finish_upgrade(const std::string& pin_dir) {
    const std::string next = next_dir(pin_dir);
    if (!is_there(pin_dir) && is_there(next))
        (void)::rename(next.c_str(), pin_dir.c_str());
    if (!open_gate(pin_dir))
        return;
    remove_directory(next);
    remove_directory(old_dir(pin_dir));
}

}  // namespace sluice
