// GET over HTTP and HTTPS, as far as feeds need it.
#pragma once

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"

namespace sluice {

struct HttpRequest {
    std::string url;
    std::vector<std::string> headers{};  // "X-Api-Key: …"
    std::string ca_file{};               // empty: the system's certificates
    bool follows_redirects = false;      // never away from https
    size_t most_bytes = 0;               // of the answer, unpacked
    std::chrono::seconds deadline{};     // for all of it
};

struct HttpAnswer {
    int status = 0;
    std::string body;
    std::string etag;           // empty: none
    std::string last_modified;  // likewise
};

// An error where there is no whole answer; one with another status than 200 is an answer. Ends
// early, with an error, where a stop is asked for.
Result<HttpAnswer> http_get(const HttpRequest& request, const std::stop_token& stop);

}  // namespace sluice
