#include "redis/protocol.h"

#include <hiredis/hiredis.h>

#include <vector>

namespace sluice::redis {

namespace {

struct FreeReply {
    void operator()(void* reply) const noexcept { ::freeReplyObject(reply); }
};

// hiredis takes the length of a list as the server claims it, and makes room for all of it. The
// type of the length differs between its releases.
template <class Count>
void* make_bounded_array(const redisReadTask* task, Count elements) {
    static const redisReplyObjectFunctions* const usual = [] {
        const std::unique_ptr<redisReader, decltype(&::redisReaderFree)> reader(
            ::redisReaderCreate(), &::redisReaderFree);
        return reader->fn;
    }();
    if (static_cast<uint64_t>(elements) > ReplyReader::kMostElements)
        return nullptr;
    return usual->createArray(task, elements);
}

redisReplyObjectFunctions* bounded_functions(const redisReader& reader) {
    static redisReplyObjectFunctions functions = [&] {
        redisReplyObjectFunctions bounded = *reader.fn;
        bounded.createArray = make_bounded_array;
        return bounded;
    }();
    return &functions;
}

Error no_redis(std::string_view what) {
    return make_error(ErrorCode::unreachable, "no answer of Redis: " + std::string(what),
                      "is it Redis that listens there, and does it want TLS (rediss://)?");
}

std::string text_of(const redisReply& reply) {
    return {reply.str, static_cast<size_t>(reply.len)};
}

Result<Reply> to_reply(const redisReply& reply) {
    switch (reply.type) {
        case REDIS_REPLY_NIL:
            return Reply();
        case REDIS_REPLY_INTEGER:
            return Reply::integer(reply.integer);
        case REDIS_REPLY_STRING:
            return Reply::text(text_of(reply));
        case REDIS_REPLY_STATUS:
            return Reply::status(text_of(reply));
        case REDIS_REPLY_ERROR:
            return Reply::error(text_of(reply));
        case REDIS_REPLY_ARRAY:
            break;
        default:
            return no_redis("a type that was not asked for");
    }
    std::vector<Reply> elements;
    elements.reserve(reply.elements);
    for (size_t i = 0; i < reply.elements; i++) {
        auto element = to_reply(*reply.element[i]);
        if (!element)
            return element;
        elements.push_back(*std::move(element));
    }
    return Reply::array(std::move(elements));
}

}  // namespace

Status append_command(std::string& bytes, const Command& command, std::string_view run_id) {
    std::vector<const char*> words;
    std::vector<size_t> sizes;
    for (const std::string& word : command.words()) {
        const bool is_gap = command.run_id_at() == words.size();
        words.push_back(is_gap ? run_id.data() : word.data());
        sizes.push_back(is_gap ? run_id.size() : word.size());
    }
    char* formatted = nullptr;
    const auto size = ::redisFormatCommandArgv(&formatted, static_cast<int>(words.size()),
                                               words.data(), sizes.data());
    if (size < 0)
        return failed("a command for Redis does not fit into memory");
    bytes.append(formatted, static_cast<size_t>(size));
    ::redisFreeCommand(formatted);
    return {};
}

void ReplyReader::Free::operator()(redisReader* reader) const noexcept {
    ::redisReaderFree(reader);
}

ReplyReader::ReplyReader() : reader_(::redisReaderCreate()) {
    if (reader_)
        reader_->fn = bounded_functions(*reader_);
}

Status ReplyReader::feed(std::string_view bytes) {
    unfinished_ += bytes.size();
    if (unfinished_ > kMostBytes)
        return failed("an answer has more than " + std::to_string(kMostBytes >> 20) + " MiB",
                      "look what is under the keys: redis-cli --bigkeys");
    if (!reader_ || ::redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK)
        return failed("an answer of Redis does not fit into memory");
    return {};
}

Result<std::optional<Reply>> ReplyReader::next() {
    void* raw = nullptr;
    if (::redisReaderGetReply(reader_.get(), &raw) != REDIS_OK)
        return no_redis(reader_->errstr);
    if (raw == nullptr)
        return std::optional<Reply>();
    const std::unique_ptr<void, FreeReply> owned(raw);
    unfinished_ = reader_->len - reader_->pos;
    return to_reply(*static_cast<const redisReply*>(raw)).transform([](Reply reply) {
        return std::optional(std::move(reply));
    });
}

}  // namespace sluice::redis
