#include "fleet/redis_drill.h"

#include <algorithm>

namespace sluice {

namespace {

int64_t now_ns() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void RedisDrill::begin(std::chrono::nanoseconds time) {
    until_ns_ = now_ns() + std::min<std::chrono::nanoseconds>(time, kLongest).count();
}

std::chrono::nanoseconds RedisDrill::left() const {
    return std::chrono::nanoseconds(std::max<int64_t>(0, until_ns_ - now_ns()));
}

Status RedisDrill::check() const {
    if (left().count() == 0)
        return {};
    return make_error(ErrorCode::unreachable, "a drill is on: Redis is not asked until it ends",
                      "it ends by itself: sluicectl budget");
}

}  // namespace sluice
