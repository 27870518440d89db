// A bouncer of CrowdSec: all decisions at the start, then what changes.
#pragma once

#include <optional>
#include <string>

#include "feeds/decisions.h"
#include "feeds/feed_worker.h"

namespace sluice {

class Crowdsec : public FeedWorker {
  public:
    Crowdsec(const BanFeed& feed, const std::string& pin_dir);

    void step(Time now, const std::stop_token& stop) override;

  private:
    Status look(Time now, const std::stop_token& stop);
    Result<DecisionStream> ask(bool all, const std::stop_token& stop) const;
    Status replace(Time now, const std::stop_token& stop);
    Status change(const DecisionBook::Change& change, Time now, const std::stop_token& stop);
    // Of all bans, or of those that changed.
    void note_outcome(const ImportOutcome& outcome, bool whole);

    DecisionBook book_;
    Status looked_, put_;
    int failures_ = 0;  // one after the other
    Time next_look_{};
    std::optional<Time> whole_at_;  // when all decisions came; none: they are to come next
    bool is_put_ = true;            // the gate has what the book has
    std::optional<uint64_t> put_gate_;
};

}  // namespace sluice
