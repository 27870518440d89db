// What Redis answered, as a value.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace sluice::redis {

class Reply {
  public:
    enum class Kind { nil, integer, text, status, error, array };

    Reply() = default;  // nil
    static Reply integer(int64_t number);
    static Reply text(std::string text);      // any bytes
    static Reply status(std::string text);    // "OK"
    static Reply error(std::string message);  // "WRONGTYPE Operation against …"
    static Reply array(std::vector<Reply> elements);

    [[nodiscard]] Kind kind() const { return kind_; }
    [[nodiscard]] bool is_nil() const { return kind_ == Kind::nil; }
    [[nodiscard]] bool is_error() const { return kind_ == Kind::error; }
    // The whole of an error, and its first word, such as "WRONGTYPE"; empty for every other reply.
    [[nodiscard]] std::string_view error_text() const;
    [[nodiscard]] std::string_view error_word() const;

    // The reply as what the caller expects. Where it is an error, that one in Redis's own words
    // with a mend; where it is of another kind, an error that says so.
    [[nodiscard]] Result<int64_t> as_integer() const;
    [[nodiscard]] Result<std::string_view> as_text() const;  // text or status
    [[nodiscard]] Result<std::span<const Reply>> as_array() const;
    // Nothing but that it is no error.
    [[nodiscard]] Status check() const;

    friend bool operator==(const Reply&, const Reply&) = default;

  private:
    using Value = std::variant<std::monostate, int64_t, std::string, std::vector<Reply>>;

    Reply(Kind kind, Value value) : kind_(kind), value_(std::move(value)) {}
    [[nodiscard]] Error unlike(std::string_view expected) const;

    Kind kind_ = Kind::nil;
    Value value_;
};

// An error of Redis: its own words, and what to do about it. NOAUTH, WRONGPASS and NOPERM are
// ErrorCode::not_permitted; what only means "not now" is ErrorCode::unreachable.
Error explain(std::string_view message);

// Whether the error says that this server can't serve now, whatever it is asked: it loads, it is a
// replica, it lost its master or its cluster.
bool is_out_of_service(const Reply& reply);

}  // namespace sluice::redis
