// sluicectl completion: what the shell offers at the tab key, from the table of commands itself.
#include "cli/command_line.h"

namespace sluice::cli {

namespace {

// "bans import" → what may follow: its commands and options.
using Words = std::map<std::string, std::vector<std::string>>;

struct Values {
    std::string_view of;  // a command that takes one, or an option
    std::vector<std::string> words;
};

const std::vector<Values>& known_values() {
    static const std::vector<Values> all = {
        {"mode", {"observe", "enforce", "off", "policy"}},
        {"completion", {"bash", "zsh", "fish"}},
        {"--xdp-mode", {"auto", "native", "generic"}},
        {"--by", {"dropped", "passed", "connections"}},
        {"--color", {"auto", "always", "never"}},
        {"--format", {"auto", "plain", "spamhaus", "firehol"}},
    };
    return all;
}

void collect(const CLI::App* app, const std::string& path, Words& words) {
    auto& own = words[path];
    for (const CLI::App* below : app->get_subcommands({})) {
        own.push_back(below->get_name());
        collect(below, path.empty() ? below->get_name() : path + ' ' + below->get_name(), words);
    }
    for (const CLI::Option* option : app->get_options())
        for (const std::string& name : option->get_lnames())
            own.push_back("--" + name);
    for (const Values& values : known_values())
        if (values.of == path)
            own.insert(own.end(), values.words.begin(), values.words.end());
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words)
        text += (text.empty() ? "" : " ") + word;
    return text;
}

// zsh takes the same function, through its own emulation of bash's completion.
std::string for_bash(const Words& words, bool zsh) {
    std::string text = zsh ? "autoload -U +X bashcompinit && bashcompinit\n" : "";
    text +=
        "_sluicectl() {\n"
        "    local path= word i\n"
        "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
        "        word=${COMP_WORDS[i]}\n"
        "        [[ $word == -* ]] || path=${path:+$path }$word\n"
        "    done\n"
        "    local words\n"
        "    case $path in\n";
    // The longest path first, or "bans" would answer for "bans import".
    for (auto entry = words.rbegin(); entry != words.rend(); ++entry)
        if (const auto& [path, own] = *entry; !path.empty())
            text += "    \"" + path + "\"*) words=\"" + joined(own) + "\" ;;\n";
    text += "    *) words=\"" + joined(words.at("")) +
            "\" ;;\n"
            "    esac\n"
            "    case ${COMP_WORDS[COMP_CWORD - 1]} in\n";
    for (const Values& values : known_values())
        if (values.of.starts_with("--"))
            text +=
                "    " + std::string(values.of) + ") words=\"" + joined(values.words) + "\" ;;\n";
    text +=
        "    esac\n"
        "    COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
        "}\n"
        "complete -o default -F _sluicectl sluicectl\n";
    return text;
}

std::string for_fish(const Words& words) {
    std::string text;
    for (const auto& [path, own] : words)
        for (const std::string& word : own) {
            const std::string condition =
                path.empty() ? "__fish_use_subcommand"
                             : "__fish_seen_subcommand_from " + path.substr(path.rfind(' ') + 1);
            text += "complete -c sluicectl -n '" + condition + "' ";
            text += word.starts_with("--") ? "-l " + word.substr(2) : "-f -a " + word;
            text += '\n';
        }
    return text;
}

Result<Answer> run(const CommandLine& line, const std::string& shell) {
    Words words;
    collect(line.root(), "", words);
    std::string text;
    if (shell == "fish")
        text = for_fish(words);
    else
        text = for_bash(words, shell == "zsh");
    return Answer{{{"shell", shell}, {"script", text}}, {}, false};
}

void show(const Json& data, Screen& screen) {
    screen.raw(data["script"].get<std::string>());
}

}  // namespace

void add_completion(CommandLine& line) {
    auto shell = std::make_shared<std::string>();
    CLI::App* app = line.add("completion", "A script that completes commands at the tab key");
    app->add_option("SHELL", *shell, "bash, zsh or fish: eval \"$(sluicectl completion bash)\"")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    line.handle(
        app, [&line, shell](const Session&) { return run(line, *shell); }, show);
}

}  // namespace sluice::cli
