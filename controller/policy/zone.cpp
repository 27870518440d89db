#include "policy/zone.h"

#include <exception>
#include <version>

#include "base/text.h"

#if __cpp_lib_chrono >= 201907L
namespace tz = std::chrono;
#else
#include <date/tz.h>
namespace tz = date;
#endif

namespace sluice {

namespace {

constexpr std::string_view kUtc = "UTC";

const tz::time_zone& in_library(const void* zone) {
    return *static_cast<const tz::time_zone*>(zone);
}

tz::local_info info_of(const void* zone, LocalTime time) {
    return in_library(zone).get_info(tz::local_seconds(time.time_since_epoch()));
}

}  // namespace

// The libraries throw where there is no such zone, and where there are none at all.
Result<Zone> Zone::find(const std::string& name) {
    if (name == kUtc)
        return Zone(nullptr);
    try {
        (void)tz::get_tzdb();
    } catch (const std::exception&) {
        return failed("this host knows no time zones but UTC", "install the package tzdata");
    }
    try {
        return Zone(tz::locate_zone(name));
    } catch (const std::exception&) {
        return failed(in_quotes(name) + " is no time zone",
                      "use one of /usr/share/zoneinfo, such as \"Europe/Berlin\"");
    }
}

LocalTime Zone::local(Instant instant) const {
    if (zone_ == nullptr)
        return LocalTime(instant.time_since_epoch());
    return LocalTime(in_library(zone_).to_local(instant).time_since_epoch());
}

Instant Zone::first(LocalTime time) const {
    const Instant as_utc(time.time_since_epoch());
    if (zone_ == nullptr)
        return as_utc;
    const tz::local_info info = info_of(zone_, time);
    return info.result == tz::local_info::nonexistent ? info.first.end : as_utc - info.first.offset;
}

Instant Zone::last(LocalTime time) const {
    if (zone_ == nullptr)
        return first(time);
    const tz::local_info info = info_of(zone_, time);
    return info.result == tz::local_info::ambiguous
               ? Instant(time.time_since_epoch()) - info.second.offset
               : first(time);
}

}  // namespace sluice
