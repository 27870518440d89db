// A block list that others keep: read again and again, from a file or a web server, and put in
// force where it makes sense.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "feeds/feed_worker.h"

namespace sluice {

// Whether a list that had `before` entries and now has `now` may be taken without a word of the
// operator's: it became neither much longer nor much shorter. Without one before, any may.
bool is_usual_change(const BanFeed& feed, size_t before, size_t now);

class BlockList : public FeedWorker {
  public:
    BlockList(const BanFeed& feed, const std::string& pin_dir);

    void step(Time now, const std::stop_token& stop) override;

  private:
    // Of a file that was read.
    struct Seen {
        uint64_t device = 0, inode = 0, size = 0;
        int64_t modified_ns = 0;
        friend bool operator==(const Seen&, const Seen&) = default;
    };
    // Of a download.
    struct Tags {
        std::string etag, last_modified;
    };
    struct Text {
        std::string text;
        Seen seen{};
        Tags tags{};
    };

    // Nothing where it is as it was.
    Result<std::optional<Text>> read_file();
    Result<std::optional<Text>> download(const std::stop_token& stop);
    void look(Time now, const std::stop_token& stop);
    Status consider(Time now, Text text);
    Status weigh(Time now);
    Status confirm(Time now);
    [[nodiscard]] Result<size_t> length_before(Time now) const;
    Status put(Time now, const std::stop_token& stop);

    Time next_look_{};
    Status looked_, put_;        // how the last of each went
    int failures_ = 0;           // one after the other
    bool is_unsettled_ = false;  // the file is being written
    std::optional<Seen> seen_;
    Tags tags_;
    std::vector<Prefix> list_;  // the last one that was accepted
    std::vector<Prefix> held_;  // the one that waits, where there is one
    std::optional<uint64_t> held_at_version_;
    Time confirmed_{};  // when the server last said that list_ is right
    Time put_at_{};
    std::optional<uint64_t> put_gate_;
    bool is_put_ = true;  // list_ is in the gate
};

}  // namespace sluice
