#include "feeds/decisions.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"

namespace sluice {

namespace {

using Json = nlohmann::json;
using std::chrono::nanoseconds;

// As for `sluicectl ban`: what one IPv6 host usually has.
constexpr unsigned kIpv6Length = 64;
// {"new": [ { field
constexpr size_t kDepthOfField = 3;

struct GoUnit {
    std::string_view name;
    double ns;
};
constexpr std::array<GoUnit, 8> kGoUnits = {{
    {"ns", 1},
    {"us", 1e3},
    {"\u00b5s", 1e3},  // micro
    {"\u03bcs", 1e3},  // mu
    {"ms", 1e6},
    {"s", 1e9},
    {"m", 60e9},
    {"h", 3600e9},
}};

bool is_same_word(std::string_view text, std::string_view lower) {
    return std::ranges::equal(text, lower, [](char a, char b) {
        return std::tolower(static_cast<unsigned char>(a)) == b;
    });
}

// One object of the stream, as far as it matters.
struct RawDecision {
    std::optional<uint64_t> id;
    std::string type, scope, value, duration;
};

Result<Prefix> prefix_of(const RawDecision& raw) {
    const bool is_address = is_same_word(raw.scope, "ip");
    if (!is_address && !is_same_word(raw.scope, "range"))
        return failed("scope " + in_quotes(raw.scope) + " is no address");
    const auto prefix = Prefix::parse(raw.value);
    if (!prefix || !is_address || prefix->family() == Family::ipv4 || !prefix->is_host())
        return prefix;
    return Prefix::make(prefix->address(), kIpv6Length);
}

Result<Decision> decision_of(const RawDecision& raw) {
    if (!raw.id)
        return failed("a decision has no id");
    if (!is_same_word(raw.type, "ban"))
        return failed("type " + in_quotes(raw.type) + " is no ban");
    const auto prefix = prefix_of(raw);
    if (!prefix)
        return prefix.error();
    const auto left = parse_go_duration(raw.duration);
    if (!left)
        return left.error();
    return Decision{*raw.id, *prefix, *left};
}

// Takes the answer apart as it is read: a tree of a hundred thousand decisions would be large.
class StreamReader : public nlohmann::json_sax<Json> {
  public:
    bool null() override { return scalar(); }
    bool boolean(bool) override { return scalar(); }
    bool number_integer(number_integer_t value) override {
        if (value >= 0)
            return number_unsigned(static_cast<number_unsigned_t>(value));
        return scalar();
    }
    bool number_unsigned(number_unsigned_t value) override {
        if (is_field() && key_ == "id")
            raw_.id = value;
        return scalar();
    }
    bool number_float(number_float_t, const string_t&) override { return scalar(); }
    bool string(string_t& value) override {
        if (is_field())
            for (const auto& [name, place] : kTexts)
                if (key_ == name)
                    raw_.*place = std::move(value);
        return scalar();
    }
    bool binary(binary_t&) override { return scalar(); }
    bool start_object(size_t) override {
        if (depth_ == 0)
            is_object_ = true;
        if (++depth_ == kDepthOfField)
            raw_ = {};
        return true;
    }
    bool end_object() override {
        if (depth_-- == kDepthOfField && is_in_list_)
            take();
        return true;
    }
    bool start_array(size_t) override {
        if (depth_++ == 1)
            is_in_list_ = list_ == "new" || list_ == "deleted";
        return true;
    }
    bool end_array() override {
        if (--depth_ == 1)
            is_in_list_ = false;
        return true;
    }
    bool key(string_t& value) override {
        (depth_ == 1 ? list_ : key_) = std::move(value);
        if (depth_ == 1 && (list_ == "new" || list_ == "deleted"))
            has_lists_ = true;
        return true;
    }
    bool parse_error(size_t, const std::string&, const Json::exception&) override { return false; }

    [[nodiscard]] bool is_stream() const { return is_object_ && has_lists_; }
    [[nodiscard]] DecisionStream take_stream() { return std::move(stream_); }

  private:
    static constexpr std::array<std::pair<std::string_view, std::string RawDecision::*>, 4> kTexts =
        {{{"type", &RawDecision::type},
          {"scope", &RawDecision::scope},
          {"value", &RawDecision::value},
          {"duration", &RawDecision::duration}}};

    [[nodiscard]] bool is_field() const { return depth_ == kDepthOfField && is_in_list_; }
    bool scalar() const { return depth_ > 0; }

    void take() {
        if (list_ == "deleted") {
            if (raw_.id)
                stream_.deleted.push_back(*raw_.id);
            return;
        }
        auto decision = decision_of(raw_);
        if (decision) {
            stream_.added.push_back(*decision);
            return;
        }
        if (stream_.skipped++ == 0)
            stream_.skipped_first = decision.error().message;
    }

    size_t depth_ = 0;
    bool is_object_ = false, has_lists_ = false, is_in_list_ = false;
    std::string list_, key_;
    RawDecision raw_;
    DecisionStream stream_;
};

}  // namespace

Result<nanoseconds> parse_go_duration(std::string_view text) {
    const auto refuse = [&] { return failed(in_quotes(text) + " is no duration"); };
    std::string_view rest = text;
    const bool negative = rest.starts_with('-');
    if (negative || rest.starts_with('+'))
        rest.remove_prefix(1);
    if (rest == "0")
        return nanoseconds(0);
    if (rest.empty())
        return refuse();
    double total = 0;
    while (!rest.empty()) {
        double number = 0;
        const bool is_number =
            std::isdigit(static_cast<unsigned char>(rest[0])) != 0 || rest[0] == '.';
        const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), number,
                                                    std::chars_format::fixed);
        if (!is_number || failure != std::errc{})
            return refuse();
        rest.remove_prefix(static_cast<size_t>(end - rest.data()));
        // The longest that fits: "ms" is not "m".
        const GoUnit* unit = nullptr;
        for (const GoUnit& one : kGoUnits)
            if (rest.starts_with(one.name) &&
                (unit == nullptr || one.name.size() > unit->name.size()))
                unit = &one;
        if (unit == nullptr)
            return refuse();
        rest.remove_prefix(unit->name.size());
        total += number * unit->ns;
    }
    constexpr auto kMost = std::numeric_limits<int64_t>::max();
    const int64_t ns = total < static_cast<double>(kMost) ? static_cast<int64_t>(total) : kMost;
    return nanoseconds(negative ? -ns : ns);
}

Result<DecisionStream> parse_decisions(std::string_view json) {
    StreamReader reader;
    if (!Json::sax_parse(json.begin(), json.end(), &reader) || !reader.is_stream())
        return failed("the answer is no stream of decisions: " +
                      in_quotes(printable(json.substr(0, kLongestQuote))));
    return reader.take_stream();
}

std::optional<DecisionBook::Time> DecisionBook::until(const Prefix& prefix) const {
    const auto found = by_prefix_.find(prefix);
    return found == by_prefix_.end() ? std::nullopt : std::optional(found->second.rbegin()->first);
}

void DecisionBook::erase(uint64_t id) {
    const auto found = decisions_.find(id);
    if (found == decisions_.end())
        return;
    const auto prefix = by_prefix_.find(found->second.prefix);
    prefix->second.erase({found->second.until, id});
    if (prefix->second.empty())
        by_prefix_.erase(prefix);
    decisions_.erase(found);
}

DecisionBook::Change DecisionBook::apply(const DecisionStream& stream, Time now) {
    std::map<Prefix, std::optional<Time>> before;
    const auto remember = [&](const Prefix& prefix) { before.try_emplace(prefix, until(prefix)); };
    for (const Decision& decision : stream.added) {
        if (const auto old = decisions_.find(decision.id); old != decisions_.end())
            remember(old->second.prefix);
        remember(decision.prefix);
        erase(decision.id);
        if (decision.left.count() <= 0)
            continue;
        // Not beyond what a clock can tell.
        const Time end = decision.left < Time::max() - now ? now + decision.left : Time::max();
        decisions_[decision.id] = {decision.prefix, end};
        by_prefix_[decision.prefix].insert({end, decision.id});
    }
    for (const uint64_t id : stream.deleted) {
        if (const auto old = decisions_.find(id); old != decisions_.end())
            remember(old->second.prefix);
        erase(id);
    }
    Change change;
    for (const auto& [prefix, was] : before) {
        const auto is = until(prefix);
        if (is == was)
            continue;
        if (is)
            change.put.push_back({prefix, *is});
        else
            change.gone.push_back(prefix);
        change.shortens |= is && was && *is < *was;
    }
    return change;
}

void DecisionBook::drop_expired(Time now) {
    std::vector<uint64_t> over;
    for (const auto& [id, standing] : decisions_)
        if (standing.until <= now)
            over.push_back(id);
    for (const uint64_t id : over)
        erase(id);
}

std::vector<DecisionBook::Ban> DecisionBook::bans() const {
    std::vector<Ban> all;
    all.reserve(by_prefix_.size());
    for (const auto& [prefix, ends] : by_prefix_)
        all.push_back({prefix, ends.rbegin()->first});
    return all;
}

}  // namespace sluice
