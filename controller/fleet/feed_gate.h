// What the fleet says, put in force in the gate: as lists and switches of the fleet, within this
// host's own guards.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fleet/feed_book.h"
#include "gate/source_rules.h"
#include "gate/tables.h"

namespace sluice {

// Fleet bans that this host does not enforce.
struct FeedRefusals {
    size_t count = 0;
    std::string first;  // and why
};

// The caller holds the WriterLock for everything that changes something.
class FeedGate {
  public:
    explicit FeedGate(Tables& tables) : tables_(tables), rules_(tables) {}

    // A wide ban is taken where its operator insisted; but nobody elsewhere insists that this host
    // cuts off whom it protects. `now_ms` is Redis's time.
    Result<FeedRefusals> put(std::span<const FeedRecord> records, const FeedBook& book,
                             uint64_t now_ms);
    Status remove(const HeldMember& member);
    // No ban hits it for so long.
    Status grant_grace(const FeedRemoval& removal, uint64_t now_ms);

    // Whether the gate's switches are as the book says. Needs no lock.
    [[nodiscard]] bool follows_switches(const FeedBook& book, uint64_t now_ms) const;
    // Makes them so; what an operator said before the gate was switched off goes into the book.
    Status follow_switches(FeedBook& book, uint64_t now_ms);

    // Makes the book agree with what the gate lists as the fleet's: the gate may be another one, or
    // be back from disk. Returns the buckets that are to be read again, whatever their digests.
    Result<std::vector<unsigned>> align(FeedBook& book);

  private:
    Tables& tables_;
    SourceRules rules_;
};

}  // namespace sluice
