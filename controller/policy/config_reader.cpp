#include "policy/config_reader.h"

#include <algorithm>
#include <cmath>

#include "base/suggest.h"
#include "base/text.h"
#include "policy/rule_id.h"

namespace sluice {

namespace {

// 0.001 and 1000, not 0.001000 and 1000.000000.
std::string plain(double number) {
    std::string text = std::to_string(number);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.'))
        text.pop_back();
    return text;
}

}  // namespace

void Problems::report(const Location& at, std::string_view name, std::string_view what,
                      std::string_view mend) {
    if (first_)
        return;
    std::string message = at.to_string() + ": " + std::string(name) + ": " + std::string(what);
    if (!mend.empty())
        message += "; " + std::string(mend);
    first_ = failed(std::move(message));
}

bool Field::is_string() const {
    return std::holds_alternative<std::string>(node_->value);
}

bool Field::is_table() const {
    return std::holds_alternative<ConfigTable>(node_->value);
}

void Field::fail(std::string_view what, std::string_view mend) const {
    problems_->report(node_->at, name_, what, mend);
}

void Field::wrong_type(std::string_view example) const {
    fail("is " + std::string(kind_name(node_->value)), "use " + std::string(example));
}

std::optional<std::string> Field::string(std::string_view example) const {
    if (const auto* text = std::get_if<std::string>(&node_->value))
        return *text;
    wrong_type(example);
    return std::nullopt;
}

std::optional<bool> Field::boolean() const {
    if (const auto* flag = std::get_if<bool>(&node_->value))
        return *flag;
    wrong_type("true or false");
    return std::nullopt;
}

std::optional<uint64_t> Field::integer(uint64_t least, uint64_t most) const {
    const std::string range =
        "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    const auto* value = std::get_if<int64_t>(&node_->value);
    if (value == nullptr) {
        wrong_type(range);
        return std::nullopt;
    }
    if (*value < 0 || static_cast<uint64_t>(*value) < least ||
        static_cast<uint64_t>(*value) > most) {
        fail(std::to_string(*value) + " is out of range", "use " + range);
        return std::nullopt;
    }
    return static_cast<uint64_t>(*value);
}

std::optional<double> Field::number(double least, double most) const {
    const std::string range = "a number from " + plain(least) + " to " + plain(most);
    double value = 0;
    if (const auto* real = std::get_if<double>(&node_->value)) {
        value = *real;
    } else if (const auto* whole = std::get_if<int64_t>(&node_->value)) {
        value = static_cast<double>(*whole);
    } else {
        wrong_type(range);
        return std::nullopt;
    }
    // Written so that NaN is out of range as well.
    if (!(value >= least && value <= most)) {
        fail((std::isfinite(value) ? plain(value) : "this") + " is out of range", "use " + range);
        return std::nullopt;
    }
    return value;
}

std::optional<std::vector<Field>> Field::items(std::string_view example) const {
    const auto* array = std::get_if<ConfigArray>(&node_->value);
    if (array == nullptr) {
        wrong_type(example);
        return std::nullopt;
    }
    std::vector<Field> fields;
    for (const ConfigNode& item : array->items)
        fields.emplace_back(item, name_ + "[" + std::to_string(fields.size() + 1) + "]",
                            *problems_);
    return fields;
}

std::vector<Field> Field::tables(std::string_view heading) const {
    const std::string example = "[[" + std::string(heading) + "]]";
    if (!is_table())
        return items(example).value_or(std::vector<Field>{});
    fail("is one table", "did you mean " + example + '?');
    return {};
}

std::optional<TableReader> Field::table(std::string_view example) const {
    if (const auto* table = std::get_if<ConfigTable>(&node_->value))
        return TableReader(*table, node_->at, name_ + ".", *problems_);
    wrong_type(example);
    return std::nullopt;
}

std::optional<TableReader> Field::named_table(std::string_view subject) const {
    const auto* table = std::get_if<ConfigTable>(&node_->value);
    if (table == nullptr) {
        wrong_type("[[" + std::string(subject) + "]]");
        return std::nullopt;
    }
    std::string prefix = name_ + ".";
    if (const ConfigEntry* entry = table->find("name")) {
        if (const auto* name = std::get_if<std::string>(&entry->node.value))
            prefix = std::string(subject) + ' ' + in_quotes(*name) + ": ";
    }
    return TableReader(*table, node_->at, std::move(prefix), *problems_);
}

std::string TableReader::name_of(std::string_view key) const {
    return prefix_ + shortened(key);
}

std::optional<Field> TableReader::take(std::string_view key) {
    known_.emplace_back(key);
    const ConfigEntry* entry = table_->find(key);
    if (entry == nullptr)
        return std::nullopt;
    return Field(entry->node, name_of(key), *problems_);
}

std::optional<Field> TableReader::require(std::string_view key, std::string_view example) {
    auto field = take(key);
    if (!field)
        fail(key, "is missing", "add " + std::string(key) + " = " + std::string(example));
    return field;
}

std::optional<std::string> TableReader::require_name(std::string_view example,
                                                     std::set<std::string>& names) {
    const std::string shown = in_quotes(example);
    const auto field = require("name", shown);
    if (!field)
        return std::nullopt;
    auto name = field->string(shown);
    if (!name)
        return std::nullopt;
    if (!is_valid_name(*name))
        field->fail("is no valid name", "use 1 to 32 of a-z, 0-9 and \"-\", such as " + shown);
    else if (!names.insert(*name).second)
        field->fail("stands twice", "give each one a name of its own");
    return name;
}

std::optional<Field> TableReader::take_tables(std::string_view key) {
    headings_.emplace_back(key);
    return take(key);
}

std::vector<std::pair<std::string, Field>> TableReader::take_all() {
    std::vector<std::pair<std::string, Field>> fields;
    for (const ConfigEntry& entry : table_->entries) {
        known_.push_back(entry.key);
        fields.emplace_back(entry.key, Field(entry.node, name_of(entry.key), *problems_));
    }
    return fields;
}

void TableReader::refuse_unavailable(std::string_view key) {
    unavailable_.emplace_back(key);
    if (const ConfigEntry* entry = table_->find(key))
        problems_->report(entry->key_at, name_of(key), "not available in this version",
                          "remove it");
}

void TableReader::fail(std::string_view key, std::string_view what, std::string_view mend) const {
    const ConfigEntry* entry = table_->find(key);
    problems_->report(entry == nullptr ? at_ : entry->key_at, name_of(key), what, mend);
}

void TableReader::finish() {
    for (const ConfigEntry& entry : table_->entries) {
        const auto listed = [&](const std::vector<std::string>& keys) {
            return std::find(keys.begin(), keys.end(), entry.key) != keys.end();
        };
        if (listed(known_) || listed(unavailable_))
            continue;
        const std::vector<std::string_view> known(known_.begin(), known_.end());
        std::string mend;
        if (const auto nearest = nearest_word(entry.key, known)) {
            const bool heading = std::ranges::find(headings_, *nearest) != headings_.end();
            mend =
                "did you mean " + (heading ? "[[" + *nearest + "]]" : '"' + *nearest + '"') + '?';
        } else {
            mend = "known here:";
            for (const std::string_view key : known)
                mend += (mend.ends_with(':') ? " " : ", ") + std::string(key);
        }
        problems_->report(entry.key_at, name_of(entry.key), "unknown key", mend);
        return;
    }
}

}  // namespace sluice
