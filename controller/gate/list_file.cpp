#include "gate/list_file.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "gate/source_rules.h"

namespace sluice {

namespace {

using Json = nlohmann::json;

constexpr size_t kNamedLines = 20;
constexpr size_t kNamedPrefixes = 3;
constexpr std::string_view kBlank = " \t\r\f\v";

std::string_view trim(std::string_view text) {
    const size_t begin = text.find_first_not_of(kBlank);
    if (begin == std::string_view::npos)
        return {};
    return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

Error at_line(size_t line, const std::string& what, std::string hint = {}) {
    return failed("line " + std::to_string(line) + ": " + what, std::move(hint));
}

// The file's kind where its first bytes show that it is no list.
std::optional<std::string> foreign(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kMagic = {{
        {"\x1f\x8b", "gzip data; unpack it first"},
        {"PK\x03\x04", "a zip archive; unpack it first"},
        {"\xfd"
         "7zXZ",
         "xz data; unpack it first"},
        {"BZh", "bzip2 data; unpack it first"},
        {"\xff\xfe", "UTF-16 text; convert it to UTF-8 first"},
        {"\xfe\xff", "UTF-16 text; convert it to UTF-8 first"},
    }};
    for (const auto& [magic, name] : kMagic)
        if (text.starts_with(magic))
            return std::string(name);
    return std::nullopt;
}

bool is_reserved(const Prefix& prefix) {
    return std::ranges::any_of(reserved_prefixes(), [&](const Prefix& reserved) {
        return reserved.contains(prefix) || prefix.contains(reserved);
    });
}

// Takes lines one by one.
class ListReader {
  public:
    explicit ListReader(bool forced) : forced_(forced) {}

    void take(size_t line, std::string_view written, std::string_view prefix_text) {
        bool cleared = false;
        const auto prefix = Prefix::parse(prefix_text, &cleared);
        if (!prefix)
            return refuse(line, written, prefix.error().message);
        take(line, written, *prefix, cleared);
    }
    void take(size_t line, std::string_view written, const Prefix& prefix, bool cleared) {
        if (is_too_wide(prefix) && !forced_)
            return refuse(line, written, prefix.to_string() + " is too wide; to insist: --force");
        list_.host_bits_cleared += cleared ? 1 : 0;
        if (!seen_.insert(prefix).second) {
            ++list_.duplicates;
            return;
        }
        if (is_reserved(prefix) && list_.reserved++ < kNamedPrefixes)
            list_.reserved_prefixes.push_back(prefix);
        list_.prefixes.push_back(prefix);
    }
    void refuse(size_t line, std::string_view written, std::string why) {
        ++list_.refused;
        if (list_.refused_lines.size() < kNamedLines)
            list_.refused_lines.push_back({line, in_quotes(written), std::move(why)});
    }

    // For what was taken last; of several times the longest holds, and no time is for good.
    void lasts(const Prefix& prefix, std::optional<std::chrono::nanoseconds> time, bool is_new) {
        if (!time)
            list_.lasting.erase(prefix);
        else if (is_new)
            list_.lasting.emplace(prefix, *time);
        else if (const auto found = list_.lasting.find(prefix); found != list_.lasting.end())
            found->second = std::max(found->second, *time);
    }
    [[nodiscard]] bool has(const Prefix& prefix) const { return seen_.contains(prefix); }

    Result<ListFile> finish() && {
        const size_t taken = list_.prefixes.size() + list_.duplicates;
        if (taken == 0 && list_.refused == 0)
            return failed("the list has no entries", "an empty download is no empty list");
        // More noise than entries: somebody took the wrong file.
        if (list_.refused > taken) {
            const auto& first = list_.refused_lines.front();
            return at_line(
                first.line, first.why,
                "this does not look like a list of prefixes: " + std::to_string(list_.refused) +
                    " lines refused, " + std::to_string(taken) + " taken");
        }
        return std::move(list_);
    }

  private:
    bool forced_;
    ListFile list_;
    std::set<Prefix> seen_;
};

// "first <tab> last <tab> length": a range by its ends. Reading only the first address of such a
// line would ban one host in place of a network.
Result<Prefix> parse_range(std::string_view first, std::string_view last, std::string_view length) {
    const auto not_one = [] { return failed("is a range that is not one prefix"); };
    const auto begin = IpAddress::parse(first);
    const auto end = IpAddress::parse(last);
    const auto prefix = Prefix::parse(std::string(first).append("/").append(length));
    if (!begin || !end || !prefix || prefix->address() != *begin || !prefix->contains(*end))
        return not_one();
    // The end must be the last address of the prefix.
    auto bytes = end->bytes();
    for (size_t i = bytes.size(); i-- > 0 && ++bytes[i] == 0;) {
    }
    if (prefix->contains(IpAddress::from_bytes(bytes)))
        return not_one();
    return *prefix;
}

void read_text_line(ListReader& reader, size_t line, std::string_view written) {
    const auto text = trim(written.substr(0, written.find_first_of("#;")));
    if (text.empty())
        return;
    std::array<std::string_view, 3> words{};
    size_t position = 0;
    for (auto& word : words) {
        position = text.find_first_not_of(" \t,", position);
        if (position == std::string_view::npos)
            break;
        const size_t end = std::min(text.find_first_of(" \t,", position), text.size());
        word = text.substr(position, end - position);
        position = end;
    }
    if (words[1] == "-" || IpAddress::parse(words[1]).has_value()) {
        const auto range = parse_range(words[0], words[1], words[2]);
        if (!range)
            return reader.refuse(line, written, in_quotes(text) + " " + range.error().message);
        return reader.take(line, written, *range, false);
    }
    reader.take(line, written, words[0]);
}

// What a Spamhaus JSON list says about itself in its last line.
struct JsonState {
    size_t records = 0;
    std::optional<size_t> announced;
};

Status read_json_line(ListReader& reader, JsonState& state, size_t line, std::string_view text) {
    const auto json = Json::parse(text, nullptr, false);
    if (json.is_discarded())
        return at_line(line, in_quotes(text) + " is not a JSON object on one line",
                       "a download that was cut short?");
    const auto type = json.is_object() ? json.find("type") : json.end();
    if (json.is_object() && type != json.end() && *type == "metadata") {
        const auto records = json.find("records");
        if (records != json.end() && records->is_number_unsigned())
            state.announced = records->get<size_t>();
        return {};
    }
    const auto cidr = json.is_object() ? json.find("cidr") : json.end();
    if (!json.is_object() || cidr == json.end() || !cidr->is_string())
        return at_line(line, "JSON, but without a \"cidr\": " + in_quotes(text),
                       "Spamhaus lists of prefixes are drop_v4.json and drop_v6.json");
    ++state.records;
    reader.take(line, text, cidr->get_ref<const std::string&>());
    return {};
}

// The bans in what `sluicectl --json bans` printed, where the text is that.
const Json* own_bans(const Json& json) {
    if (!json.is_object() || !json.contains("data") || !json["data"].is_object())
        return nullptr;
    const auto bans = json["data"].find("bans");
    return bans != json["data"].end() && bans->is_array() ? &*bans : nullptr;
}

void read_own_ban(ListReader& reader, const Json& ban) {
    const auto written = ban.dump(-1, ' ', false, Json::error_handler_t::replace);
    const auto text = ban.is_object() ? ban.find("prefix") : ban.end();
    if (!ban.is_object() || text == ban.end() || !text->is_string())
        return reader.refuse(1, written, "has no prefix");
    const auto prefix = Prefix::parse(text->get_ref<const std::string&>());
    if (!prefix)
        return reader.refuse(1, written, prefix.error().message);
    const auto ends = ban.find("expires_in_s");
    std::optional<std::chrono::nanoseconds> time;
    if (ends != ban.end() && ends->is_number())
        time = std::chrono::duration_cast<std::chrono::nanoseconds>(
            std::chrono::duration<double>(ends->get<double>()));
    if (time && time->count() <= 0)
        return;
    const bool is_new = !reader.has(*prefix);
    reader.take(1, written, *prefix, false);
    reader.lasts(*prefix, time, is_new);
}

}  // namespace

const std::vector<Prefix>& reserved_prefixes() {
    static const auto kReserved = [] {
        std::vector<Prefix> all;
        for (const auto* text : {"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8",
                                 "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "224.0.0.0/3",
                                 "::/127", "fc00::/7", "fe80::/10", "ff00::/8"})
            if (auto parsed = Prefix::parse(text))
                all.push_back(*parsed);
        return all;
    }();
    return kReserved;
}

Result<ListFormat> parse_list_format(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, ListFormat>, 4> kFormats = {{
        {"auto", ListFormat::automatic},
        {"plain", ListFormat::plain},
        {"spamhaus", ListFormat::spamhaus},
        {"firehol", ListFormat::firehol},
    }};
    for (const auto& [name, format] : kFormats)
        if (name == text)
            return format;
    return make_error(ErrorCode::usage, in_quotes(text) + " is no format of a list",
                      "use auto, plain, spamhaus or firehol");
}

Result<ListFile> parse_list(std::string_view text, ListFormat format, bool forced) {
    if (const auto kind = foreign(text))
        return at_line(1, "this is " + *kind);
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (text.starts_with(kByteOrderMark))
        text.remove_prefix(kByteOrderMark.size());

    ListReader reader(forced);
    if (format == ListFormat::automatic && text.starts_with("{\"ok\"")) {
        const auto printed = Json::parse(text, nullptr, false);
        if (const Json* bans = own_bans(printed)) {
            for (const Json& ban : *bans)
                read_own_ban(reader, ban);
            return std::move(reader).finish();
        }
    }
    JsonState json;
    std::optional<bool> is_json;
    size_t line = 0;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        const auto written = trim(text.substr(begin, end - begin));
        begin = end + 1;
        ++line;
        if (written.empty())
            continue;
        if (written.find('\0') != std::string_view::npos)
            return at_line(line, "binary data");
        if (!is_json) {
            if (written.front() == '<')
                return at_line(line, "this is HTML or XML: " + in_quotes(written),
                               "see what the address of the download answers");
            is_json = written.front() == '{' || written.front() == '[';
            if (*is_json && format != ListFormat::automatic && format != ListFormat::spamhaus)
                return at_line(line, "this is JSON: " + in_quotes(written),
                               "use --format spamhaus");
        }
        if (!*is_json)
            read_text_line(reader, line, written);
        else if (auto read = read_json_line(reader, json, line, written); !read)
            return read.error();
    }
    if (is_json.value_or(false)) {
        if (json.announced && *json.announced != json.records)
            return failed("the list says that it has " + std::to_string(*json.announced) +
                              " records, but has " + std::to_string(json.records),
                          "download it again");
        if (!json.announced && !forced)
            return failed("the list ends without its line of metadata",
                          "download it again; or take it as it is: --force");
    }
    return std::move(reader).finish();
}

Result<ListFile> read_list_file(const std::string& path, ListFormat format, bool forced) {
    const auto text = read_input_file(
        path,
        {.most_bytes = kLongestList, .mend = "split it, and import its parts", .or_a_pipe = true});
    if (!text)
        return text.error();
    auto list = parse_list(*text, format, forced);
    if (!list)
        return list.error().with_context(path);
    return list;
}

}  // namespace sluice
