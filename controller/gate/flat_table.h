// FlatTable<T>: a memory-mapped BPF array, read and written in place beside the packet path.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"

namespace sluice {

template <class T>
class FlatTable {
    static_assert(std::is_trivially_copyable_v<T>);
    // Elements of an array lie 8 bytes apart at least; a lone number is the one exception here.
    static_assert(sizeof(T) % 8 == 0 || sizeof(T) <= 4);

  public:
    FlatTable() = default;
    FlatTable(FlatTable&& other) noexcept
        : fd_(std::move(other.fd_)),
          data_(std::exchange(other.data_, nullptr)),
          count_(std::exchange(other.count_, 0)) {}
    FlatTable& operator=(FlatTable&& other) noexcept {
        std::swap(fd_, other.fd_);
        std::swap(data_, other.data_);
        std::swap(count_, other.count_);
        return *this;
    }
    ~FlatTable() {
        if (data_ != nullptr)
            ::munmap(data_, bytes());
    }

    // Maps `count` elements of the array behind `fd`; `name` is for the error message.
    static Result<FlatTable> map(UniqueFd fd, size_t count, std::string_view name) {
        FlatTable table;
        table.count_ = count;
        void* memory =
            ::mmap(nullptr, table.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
        if (memory == MAP_FAILED)
            return from_errno(errno, std::string("map ").append(name).append(" into memory"));
        table.fd_ = std::move(fd);
        table.data_ = static_cast<T*>(memory);
        return table;
    }

    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] size_t size() const { return count_; }
    [[nodiscard]] T& operator[](size_t index) const { return data_[index]; }
    [[nodiscard]] std::span<T> span() const { return {data_, count_}; }

  private:
    [[nodiscard]] size_t bytes() const {
        constexpr size_t page = 4096;
        constexpr size_t stride = (sizeof(T) + 7) / 8 * 8;
        return (count_ * stride + page - 1) / page * page;
    }

    UniqueFd fd_;
    T* data_ = nullptr;
    size_t count_ = 0;
};

}  // namespace sluice
