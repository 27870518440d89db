// Reads a configuration tree field by field. Readers go on after a problem, so that the code that
// uses them stays straight; only the first problem is kept, and it refuses the whole file.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/config_tree.h"

namespace sluice {

class Problems {
  public:
    // "FILE:LINE:COLUMN: name: what; mend"; kept only where it is the first one.
    void report(const Location& at, std::string_view name, std::string_view what,
                std::string_view mend);
    [[nodiscard]] const std::optional<Error>& first() const { return first_; }

  private:
    std::optional<Error> first_;
};

class TableReader;

// One value, and what to call it in an error. Each accessor reports a wrong type or range by
// itself and then yields nothing; `example` is the right form to show there.
class Field {
  public:
    Field(const ConfigNode& node, std::string name, Problems& problems)
        : node_(&node), name_(std::move(name)), problems_(&problems) {}

    [[nodiscard]] const Location& at() const { return node_->at; }
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] bool is_string() const;
    [[nodiscard]] bool is_table() const;

    [[nodiscard]] std::optional<std::string> string(std::string_view example) const;
    [[nodiscard]] std::optional<bool> boolean() const;
    [[nodiscard]] std::optional<uint64_t> integer(uint64_t least, uint64_t most) const;
    [[nodiscard]] std::optional<double> number(double least, double most) const;
    [[nodiscard]] std::optional<std::vector<Field>> items(std::string_view example) const;
    // The tables of [[heading]].
    [[nodiscard]] std::vector<Field> tables(std::string_view heading) const;
    [[nodiscard]] std::optional<TableReader> table(std::string_view example) const;
    // One of [[subject]]: its keys are called `subject "login": key` where it has a name.
    [[nodiscard]] std::optional<TableReader> named_table(std::string_view subject) const;

    // A string that `parse` understands; its error becomes the field's.
    template <class T>
    [[nodiscard]] std::optional<T> parsed(Result<T> (*parse)(std::string_view),
                                          std::string_view example) const {
        const auto text = string(example);
        if (!text)
            return std::nullopt;
        auto value = parse(*text);
        if (!value) {
            fail(value.error());
            return std::nullopt;
        }
        return *std::move(value);
    }

    void fail(std::string_view what, std::string_view mend) const;
    void fail(const Error& error) const { fail(error.message, error.hint); }
    void wrong_type(std::string_view example) const;

  private:
    const ConfigNode* node_;
    std::string name_;
    Problems* problems_;
};

// A table whose keys are taken by name; what nobody took is unknown.
class TableReader {
  public:
    // `prefix` stands before each key in an error: "sources." or "service \"login\": ".
    TableReader(const ConfigTable& table, Location at, std::string prefix, Problems& problems)
        : table_(&table), at_(std::move(at)), prefix_(std::move(prefix)), problems_(&problems) {}

    [[nodiscard]] bool has(std::string_view key) const { return table_->find(key) != nullptr; }
    [[nodiscard]] std::optional<Field> take(std::string_view key);
    // As take(), and its absence is a problem.
    [[nodiscard]] std::optional<Field> require(std::string_view key, std::string_view example);
    // The key "name": valid, and not among `names`, to which it is added.
    [[nodiscard]] std::optional<std::string> require_name(std::string_view example,
                                                          std::set<std::string>& names);
    // One whose value is written as [[key]].
    [[nodiscard]] std::optional<Field> take_tables(std::string_view key);
    // All entries, for a table whose keys are data.
    [[nodiscard]] std::vector<std::pair<std::string, Field>> take_all();
    // The key is known, but what it asks for does not exist yet.
    void refuse_unavailable(std::string_view key);

    void fail(std::string_view key, std::string_view what, std::string_view mend) const;
    // Reports the first key that nobody took, with the nearest one that somebody asked for.
    void finish();

  private:
    [[nodiscard]] std::string name_of(std::string_view key) const;

    const ConfigTable* table_;
    Location at_;
    std::string prefix_;
    Problems* problems_;
    std::vector<std::string> known_;
    std::vector<std::string> headings_;  // of known_, those of take_tables()
    std::vector<std::string> unavailable_;
};

}  // namespace sluice
