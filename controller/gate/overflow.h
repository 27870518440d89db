// Overflow<Key, Value>: the small hash behind a table of lines, with what lies behind which line.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gate/bpf_hash.h"
#include "gate/table_use.h"

namespace sluice {

template <class Key, class Value>
class Overflow {
  public:
    // `line_of` is asked anew after each change of the view.
    Overflow(BpfHash<Key, Value> hash, std::function<uint32_t(const Key&)> line_of)
        : hash_(std::move(hash)), line_of_(std::move(line_of)) {}

    [[nodiscard]] uint64_t capacity() const { return hash_.capacity(); }
    [[nodiscard]] Result<TableUse> use() const {
        TableUse use{hash_.name(), 0, hash_.capacity()};
        const auto read = hash_.for_each([&use](const Key&, const Value&) { ++use.used; });
        if (!read)
            return read.error();
        return use;
    }
    [[nodiscard]] std::optional<Value> find(const Key& key) const { return hash_.find(key); }
    template <class Visit>
    Status for_each(Visit&& visit) const {
        return hash_.for_each(std::forward<Visit>(visit));
    }

    Status put(const Key& key, const Value& value) {
        forget();
        return hash_.put(key, value);
    }
    Status put_all(std::span<const Key> keys, std::span<const Value> values) {
        forget();
        return hash_.put_all(keys, values);
    }
    void erase_all(std::span<const Key> keys) {
        forget();
        hash_.erase_all(keys);
    }
    void erase(const Key& key) {
        if (by_line_)
            std::erase_if((*by_line_)[line_of_(key)], [&key](const Key& other) {
                return std::memcmp(&other, &key, sizeof(key)) == 0;
            });
        hash_.erase(key);
    }

    // The keys behind a line. Filters cannot be cleared without knowing them; they are few, so they
    // are read once and kept until somebody else may have changed them.
    std::span<const Key> behind(uint32_t line) {
        if (!by_line_) {
            by_line_.emplace();
            (void)hash_.for_each([this](const Key& key, const Value&) {
                (*by_line_)[line_of_(key)].push_back(key);
            });
        }
        const auto found = by_line_->find(line);
        return found == by_line_->end() ? std::span<const Key>{} : std::span(found->second);
    }
    void forget() { by_line_.reset(); }

  private:
    BpfHash<Key, Value> hash_;
    std::function<uint32_t(const Key&)> line_of_;
    std::optional<std::unordered_map<uint32_t, std::vector<Key>>> by_line_;
};

}  // namespace sluice
