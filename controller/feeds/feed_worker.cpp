#include "feeds/feed_worker.h"

#include "base/log.h"

namespace sluice {

FeedWorker::FeedWorker(const BanFeed& feed, const std::string& pin_dir, const std::string& reason)
    : feed_(feed), gate_(pin_dir, feed.name, reason) {
    standing_.name = feed.name;
    standing_.type = feed.type;
    standing_.from = feed.file.empty() ? feed.url : feed.file;
}

void FeedWorker::begin() {
    if (const auto count = gate_.count(); count && *count != 0)
        note([&](BanFeedStanding& standing) { standing.entries = *count; });
}

BanFeedStanding FeedWorker::standing() const {
    const std::lock_guard lock(mutex_);
    return standing_;
}

void FeedWorker::tell(const Status& status) {
    std::optional<Error> before;
    note([&](BanFeedStanding& standing) {
        before = standing.error;
        standing.error = status ? std::nullopt : std::optional(status.error());
    });
    if (!status && (!before || before->message != status.error().message))
        log_error("feed " + feed_.name, status.error());
    if (status && before)
        log(LogLevel::info, "feed " + feed_.name + ": is good again");
}

}  // namespace sluice
