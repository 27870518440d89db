// The book of the fleet's feed on disk: a restarted daemon reads what changed since, not
// everything.
//
// It need not be the newest: what is missing comes again from Redis, and changes are told from
// repetitions by their revs. So a file that is torn is no error, but no book.
#pragma once

#include <string>

#include "base/result.h"
#include "fleet/feed_book.h"

namespace sluice {

class FeedFile {
  public:
    explicit FeedFile(const std::string& state_dir) : path_(state_dir + "/fleet") {}

    // Of the fleet of this name; an empty one where there is none.
    [[nodiscard]] FeedBook load(const std::string& fleet) const;
    [[nodiscard]] Status save(const FeedBook& book, const std::string& fleet) const;

  private:
    std::string path_;
};

}  // namespace sluice
