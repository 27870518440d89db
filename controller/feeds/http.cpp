#include "feeds/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <string_view>

#include "base/text.h"

namespace sluice {

namespace {

constexpr long kConnectSeconds = 10;
// A server that sends less than that for so long is as good as gone.
constexpr long kSlowBytesPerSecond = 100;
constexpr long kSlowSeconds = 20;
constexpr long kMostRedirects = 5;
// Between two looks at whether to stop.
constexpr int kPauseMs = 100;

struct EndEasy {
    void operator()(CURL* easy) const noexcept { ::curl_easy_cleanup(easy); }
};
struct EndMulti {
    void operator()(CURLM* multi) const noexcept { ::curl_multi_cleanup(multi); }
};
struct FreeHeaders {
    void operator()(curl_slist* list) const noexcept { ::curl_slist_free_all(list); }
};
using Headers = std::unique_ptr<curl_slist, FreeHeaders>;

struct Receiver {
    HttpAnswer answer{};
    size_t most_bytes = 0;
    bool is_too_long = false;
};

size_t take_body(char* data, size_t size, size_t count, void* user) noexcept {
    auto& receiver = *static_cast<Receiver*>(user);
    const size_t bytes = size * count;
    if (receiver.answer.body.size() + bytes > receiver.most_bytes) {
        receiver.is_too_long = true;
        return 0;
    }
    try {
        receiver.answer.body.append(data, bytes);
    } catch (...) {
        return 0;
    }
    return bytes;
}

// Whether the line is that header; its value.
bool is_header(std::string_view line, std::string_view name, std::string& value) {
    const auto same = [](char a, char b) {
        return std::tolower(static_cast<unsigned char>(a)) == b;
    };
    if (line.size() <= name.size() || line[name.size()] != ':' ||
        !std::equal(name.begin(), name.end(), line.begin(),
                    [&](char wanted, char got) { return same(got, wanted); }))
        return false;
    line.remove_prefix(name.size() + 1);
    const size_t begin = line.find_first_not_of(" \t");
    const size_t end = line.find_last_not_of(" \t\r\n");
    value = begin == std::string_view::npos ? "" : line.substr(begin, end - begin + 1);
    return true;
}

size_t take_header(char* data, size_t size, size_t count, void* user) noexcept {
    auto& answer = static_cast<Receiver*>(user)->answer;
    const std::string_view line(data, size * count);
    try {
        // Of several answers, as with redirects, the last one counts.
        if (line.starts_with("HTTP/"))
            answer.etag.clear(), answer.last_modified.clear();
        (void)(is_header(line, "etag", answer.etag) ||
               is_header(line, "last-modified", answer.last_modified));
    } catch (...) {
        return 0;
    }
    return line.size();
}

Headers headers_of(const HttpRequest& request) {
    Headers list;
    for (const std::string& header : request.headers)
        if (curl_slist* longer = ::curl_slist_append(list.get(), header.c_str())) {
            (void)list.release();
            list.reset(longer);
        }
    return list;
}

void set_options(CURL* easy, const HttpRequest& request, const Headers& headers,
                 Receiver& receiver) {
    const bool secure = request.url.starts_with("https:");
    const auto set = [easy](CURLoption option, auto value) {
        (void)::curl_easy_setopt(easy, option, value);
    };
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
    set(CURLOPT_FOLLOWLOCATION, request.follows_redirects ? 1L : 0L);
    set(CURLOPT_MAXREDIRS, kMostRedirects);
    set(CURLOPT_HTTPHEADER, headers.get());
    set(CURLOPT_USERAGENT, "sluice");
    set(CURLOPT_ACCEPT_ENCODING, "");  // all that libcurl can unpack
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_TIMEOUT, static_cast<long>(request.deadline.count()));
    set(CURLOPT_LOW_SPEED_LIMIT, kSlowBytesPerSecond);
    set(CURLOPT_LOW_SPEED_TIME, kSlowSeconds);
    if (!request.ca_file.empty()) {
        set(CURLOPT_CAINFO, request.ca_file.c_str());
        set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
    }
    set(CURLOPT_WRITEFUNCTION, &take_body);
    set(CURLOPT_WRITEDATA, static_cast<void*>(&receiver));
    set(CURLOPT_HEADERFUNCTION, &take_header);
    set(CURLOPT_HEADERDATA, static_cast<void*>(&receiver));
}

// CURLE_ABORTED_BY_CALLBACK where it was stopped.
CURLcode perform(CURLM* multi, const std::stop_token& stop) {
    for (int running = 1; running != 0;) {
        if (stop.stop_requested())
            return CURLE_ABORTED_BY_CALLBACK;
        if (::curl_multi_perform(multi, &running) != CURLM_OK)
            return CURLE_FAILED_INIT;
        if (running != 0)
            (void)::curl_multi_poll(multi, nullptr, 0, kPauseMs, nullptr);
    }
    int left = 0;
    const CURLMsg* message = ::curl_multi_info_read(multi, &left);
    return message != nullptr ? message->data.result : CURLE_FAILED_INIT;
}

Error explain(CURLcode code, const HttpRequest& request, const Receiver& receiver,
              const char* details) {
    if (receiver.is_too_long)
        return failed("the answer is longer than " + std::to_string(request.most_bytes) + " bytes");
    const std::string what = printable(details[0] != '\0' ? details : ::curl_easy_strerror(code));
    switch (code) {
        case CURLE_PEER_FAILED_VERIFICATION:
            return failed(what, "where it has a certificate of your own, name its CA as ca_file");
        case CURLE_SSL_CACERT_BADFILE:
            return failed(what, "ca_file has to be a readable PEM file");
        case CURLE_UNSUPPORTED_PROTOCOL:
            return failed(what, "it redirects to what is no web, or not encrypted");
        case CURLE_PARTIAL_FILE:
            return failed("the answer was cut short: " + what);
        default:
            return failed(what);
    }
}

}  // namespace

Result<HttpAnswer> http_get(const HttpRequest& request, const std::stop_token& stop) {
    static const CURLcode ready = ::curl_global_init(CURL_GLOBAL_DEFAULT);
    const std::unique_ptr<CURLM, EndMulti> multi(ready == CURLE_OK ? ::curl_multi_init() : nullptr);
    const std::unique_ptr<CURL, EndEasy> easy(multi ? ::curl_easy_init() : nullptr);
    if (!easy)
        return failed("libcurl can't be used");
    Receiver receiver{.most_bytes = request.most_bytes};
    std::array<char, CURL_ERROR_SIZE> details{};
    const Headers headers = headers_of(request);
    set_options(easy.get(), request, headers, receiver);
    (void)::curl_easy_setopt(easy.get(), CURLOPT_ERRORBUFFER, details.data());
    (void)::curl_multi_add_handle(multi.get(), easy.get());
    const CURLcode code = perform(multi.get(), stop);
    long status = 0;
    (void)::curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
    (void)::curl_multi_remove_handle(multi.get(), easy.get());
    if (code != CURLE_OK)
        return explain(code, request, receiver, details.data());
    receiver.answer.status = static_cast<int>(status);
    return std::move(receiver.answer);
}

}  // namespace sluice
