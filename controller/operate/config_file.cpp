#include "operate/config_file.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "base/text.h"
#include "operate/protected_sources.h"
#include "policy/ban_feed.h"
#include "policy/config_text.h"
#include "policy/config_tree.h"
#include "policy/parse.h"

namespace sluice {

namespace {

namespace fs = std::filesystem;

Result<std::string> merged_text(const std::string& path, const std::vector<std::string>& more) {
    const auto text = read_config_text(path);
    if (!text)
        return text;
    auto config = read_toml(*text, path);
    if (!config)
        return config.error();
    std::string merged = "# " + printable(path) + ", merged with conf.d\n";
    for (const std::string& name : more) {
        const auto added_text = read_config_text(name);
        if (!added_text)
            return added_text.error();
        auto added = read_toml(*added_text, name);
        if (!added)
            return added.error();
        if (const Status status = merge(*config, *std::move(added)); !status)
            return status.error();
    }
    return merged + config_text(*config);
}

Result<ConfigFile> load_alone(const std::string& path) {
    const auto text = read_config_text(path);
    if (!text)
        return text.error();
    auto policy = parse_policy(*text, path);
    if (!policy)
        return policy.error();
    return ConfigFile{*std::move(policy), *text, {}};
}

Result<ConfigFile> load_merged(const std::string& path, const std::vector<std::string>& more) {
    // For its errors, which name the place in the file that the operator wrote.
    auto policy = load_policy(path);
    if (!policy)
        return policy.error();
    const auto text = merged_text(path, more);
    if (!text)
        return text.error();
    if (const Status fits = check_config_size(*text); !fits)
        return fits.error().with_context(path);
    // The text that the gate keeps must say the same; a file that changed meanwhile does not.
    auto kept = parse_policy(*text, path);
    if (!kept)
        return kept.error().with_context("the merged configuration");
    kept->warnings = std::move(policy->warnings);
    return ConfigFile{*std::move(kept), *text, {}};
}

// What Sluice itself, or its operators, keep is no feed's.
Status check_feeds(const ConfigFile& config, const std::string& path) {
    const auto feeds = feeds_of(config.text, path);
    if (!feeds)
        return feeds.error();
    for (const BanFeed& feed : *feeds)
        if (is_reserved_list(feed.name) || feed.name == kOperatorList)
            return failed(path + ": feeds." + feed.name + ": is a list that Sluice itself keeps",
                          "give the feed another name");
    return {};
}

}  // namespace

Result<ConfigFile> load_config_file(const std::string& path) {
    const auto more = drop_ins(path);
    if (!more)
        return more.error();
    auto loaded = more->empty() ? load_alone(path) : load_merged(path, *more);
    if (!loaded)
        return loaded;
    if (const Status usable = check_feeds(*loaded, path); !usable)
        return usable.error();
    std::error_code ignored;
    const fs::path absolute = fs::absolute(path, ignored);
    loaded->source = absolute.empty() ? path : absolute.string();
    return loaded;
}

ConfigFile watching_config() {
    return {
        Policy{},
        "# No configuration was given: watch and count, and limit nobody.\nmode = \"observe\"\n",
        "built-in"};
}

}  // namespace sluice
