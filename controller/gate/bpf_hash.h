// BpfHash<Key, Value>: a BPF hash map by its types; one system call an entry, or many in a batch.
#pragma once

#include <bpf/bpf.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"

namespace sluice {

// The sizes of the tables about sources are fixed.
inline constexpr std::string_view kMakeRoom =
    "make room: sluicectl bans shows whose they are, bans flush --source LIST takes them back";

template <class Key, class Value>
class BpfHash {
    static_assert(std::has_unique_object_representations_v<Key>);
    static_assert(std::is_trivially_copyable_v<Value>);

  public:
    // `name` lives on, as literals do.
    BpfHash(int fd, std::string_view name, uint64_t capacity)
        : fd_(fd), name_(name), capacity_(capacity) {}

    [[nodiscard]] std::string_view name() const { return name_; }
    [[nodiscard]] uint64_t capacity() const { return capacity_; }

    [[nodiscard]] std::optional<Value> find(const Key& key) const {
        Value value{};
        if (bpf_map_lookup_elem(fd_, &key, &value) != 0)
            return std::nullopt;
        return value;
    }

    Status put(const Key& key, const Value& value) const {
        return bpf_map_update_elem(fd_, &key, &value, BPF_ANY) == 0 ? Status{} : why(errno);
    }

    // Whether it was there.
    bool erase(const Key& key) const { return bpf_map_delete_elem(fd_, &key) == 0; }

    // On failure some are there already.
    Status put_all(std::span<const Key> keys, std::span<const Value> values) const {
        for (size_t put = 0; put < keys.size();) {
            auto count = static_cast<uint32_t>(std::min(keys.size() - put, kBatch));
            if (bpf_map_update_batch(fd_, &keys[put], &values[put], &count, nullptr) != 0)
                return why(errno);
            put += count;
        }
        return {};
    }

    void erase_all(std::span<const Key> keys) const {
        for (size_t erased = 0; erased < keys.size();) {
            auto count = static_cast<uint32_t>(std::min(keys.size() - erased, kBatch));
            const int rc = bpf_map_delete_batch(fd_, &keys[erased], &count, nullptr);
            erased += count;
            if (rc != 0)
                ++erased;  // the batch stopped at a key that is not there
        }
    }

    // visit(key, value) for every entry.
    template <class Visit>
    Status for_each(Visit&& visit) const {
        std::vector<Key> keys(kBatch);
        std::vector<Value> values(kBatch);
        uint32_t position = 0;
        for (bool first = true, more = true; more;) {
            auto count = static_cast<uint32_t>(keys.size());
            const int rc = bpf_map_lookup_batch(fd_, first ? nullptr : &position, &position,
                                                keys.data(), values.data(), &count, nullptr);
            const int error_number = rc == 0 ? 0 : errno;
            if (error_number == ENOSPC) {  // one bucket holds more than that
                keys.resize(keys.size() * 2);
                values.resize(values.size() * 2);
                continue;
            }
            if (error_number != 0 && error_number != ENOENT)
                return from_errno(error_number, "read table " + std::string(name_));
            for (uint32_t i = 0; i < count; ++i)
                visit(keys[i], values[i]);
            first = false;
            more = error_number == 0;
        }
        return {};
    }

  private:
    static constexpr size_t kBatch = 4096;

    Status why(int error_number) const {
        if (error_number == E2BIG)
            return failed("table " + std::string(name_) + " is full (" + std::to_string(capacity_) +
                              " entries)",
                          std::string(kMakeRoom));
        return from_errno(error_number, "write table " + std::string(name_));
    }

    int fd_;
    std::string_view name_;
    uint64_t capacity_;
};

}  // namespace sluice
