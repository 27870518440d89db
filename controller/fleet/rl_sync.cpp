#include "fleet/rl_sync.h"

#include <algorithm>
#include <utility>

#include "fleet/budget_sync.h"
#include "gate/source_rules.h"
#include "operate/gate_access.h"
#include "policy/rl_reader.h"

namespace sluice {

namespace {

using redis::Command, redis::Reply;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

// How late a host hears of a change, with a tenth of jitter.
constexpr milliseconds kPoll = 1s;
// Who writes to the gate otherwise is done by then; if not, the next poll tries again.
constexpr milliseconds kPatience = 200ms;
// A member that took another's place shows in no length.
constexpr auto kWhitelistPoll = 30s;
// Scripts that delete the whitelist and write it again are done by then.
constexpr auto kRewrite = 10s;
// Of all routes and ASes together: two commands for each go to Redis in every second.
constexpr size_t kMostKeys = 1024;
constexpr std::string_view kOther = "other";

std::vector<std::string> routes_of(const RlSettings& settings, const std::string& service) {
    const auto named = settings.routes.find(service);
    if (named != settings.routes.end())
        return named->second;
    return service == kOther ? std::vector<std::string>() : std::vector{service};
}

std::vector<std::string> keys_of(const RlMember& member) {
    std::set<std::string> keys;
    for (const std::string& service : member.services)
        for (const std::string& route : routes_of(*member.settings, service)) {
            keys.insert(rl_policy_key(route));
            for (const uint32_t asn : member.settings->asns)
                keys.insert(rl_asn_key(route, asn));
        }
    return {keys.begin(), keys.end()};
}

// Those of kRlFields alone, however many others there are.
Result<RlTexts> texts_of(const Reply& reply) {
    const auto values = reply.as_array();
    if (!values)
        return values.error();
    RlTexts texts;
    for (size_t i = 0; i < std::min(texts.size(), values->size()); ++i) {
        if ((*values)[i].is_nil())
            continue;
        const auto text = (*values)[i].as_text();
        if (!text)
            return text.error();
        texts[i] = *text;
    }
    return texts;
}

// PTTL's words for a key that is not there, and for one without an end.
constexpr int64_t kNoKey = -2;
constexpr int64_t kNoEnd = -1;

// What is not whole is refused, too: whoever writes a policy one field after the other is not done.
Result<RlNumbers> whole_numbers(const RlTexts& texts, const RlNumbers& inherited) {
    auto numbers = parse_rl_numbers(texts);
    if (!numbers)
        return numbers;
    if (*numbers == RlNumbers())
        return failed("it has none of the fields of a policy", "give it limit and window_ms");
    const auto requests = requests_of(inherit(*numbers, inherited));
    return requests ? numbers : requests.error();
}

void see(RlMemory& memory, const Reply& fields, const Reply& ttl, const RlNumbers& inherited,
         std::chrono::nanoseconds base_after, RlMemory::Clock::time_point now) {
    const auto texts = texts_of(fields);
    const auto left = ttl.as_integer();
    if (!texts || !left)
        return memory.refuse(!texts ? texts.error().message : left.error().message);
    if (*left == kNoKey)
        return memory.see_nothing(now);
    const auto numbers = whole_numbers(*texts, inherited);
    if (!numbers)
        return memory.refuse(numbers.error().message + "; " + numbers.error().hint);
    memory.see(*numbers, *left == kNoEnd ? std::nullopt : std::optional(milliseconds(*left)),
               base_after, now);
}

RlRoute route_of(const RlMember& member, const RlBook& book, const std::string& name,
                 RlMemory::Clock::time_point now) {
    RlRoute route{.route = name};
    const auto look = [&](const std::string& key) -> std::optional<RlNumbers> {
        const auto known = book.find(key);
        if (known == book.end())
            return std::nullopt;
        if (!known->second.error().empty() && route.error.empty())
            route.error = member.settings->prefix + key + ": " + known->second.error();
        if (const auto end = known->second.ends(now))
            route.ends_in = std::min(route.ends_in.value_or(milliseconds::max()),
                                     std::chrono::ceil<milliseconds>(*end - now));
        return known->second.value(now);
    };
    route.base = look(rl_policy_key(name));
    for (const uint32_t asn : member.settings->asns)
        if (const auto numbers = look(rl_asn_key(name, asn)))
            route.asns.emplace_back(asn, *numbers);
    return route;
}

// Of the gate. A list that never was there needs no look at everything that is listed.
Result<std::set<IpAddress>> whitelisted_in(Tables& tables) {
    SourceRules rules(tables);
    std::set<IpAddress> addresses;
    const auto known = rules.knows_list(kRlList);
    if (!known)
        return known.error();
    if (!*known)
        return addresses;
    const auto listed = rules.list(RuleKind::allow, kRlList);
    if (!listed)
        return listed.error();
    for (const ListedRule& rule : listed->rules)
        addresses.insert(rule.prefix.address());
    return addresses;
}

bool says_anything(const RlRoute& route) {
    return route.base || !route.error.empty();
}

// Whether anything is to be done, or told, about them; what is left of a time is not.
bool have_other_limits(const std::vector<RlService>& a, const std::vector<RlService>& b) {
    return !std::ranges::equal(a, b, [](const RlService& x, const RlService& y) {
        return x.service == y.service && x.ceiling == y.ceiling && x.there == y.there;
    });
}

}  // namespace

RlMember rl_member(const Policy& own, const Policy& in_force) {
    RlMember member{.redis = own.redis, .settings = own.rl};
    if (member.settings)
        for (const Service& service : in_force.services)
            member.services.push_back(service.name);
    return member;
}

std::vector<RlService> rl_services(const RlMember& member, const RlBook& book) {
    std::vector<RlService> services;
    if (!member.settings)
        return services;
    const auto now = RlMemory::Clock::now();
    for (const std::string& service : member.services) {
        std::vector<RlRoute> routes;
        for (const std::string& route : routes_of(*member.settings, service))
            routes.push_back(route_of(member, book, route, now));
        if (std::ranges::any_of(routes, says_anything))
            services.push_back(translate(service, std::move(routes), *member.settings));
    }
    return services;
}

Result<std::vector<RlService>> kept_rl_services(const RlMember& member,
                                                const std::string& state_dir) {
    if (!member.settings)
        return std::vector<RlService>();
    const auto book = RlFile(state_dir).load();
    if (!book)
        return book.error();
    return rl_services(member, *book);
}

RlSync::RlSync(std::string pin_dir, const std::string& state_dir, const RedisDrill& drill,
               OnWhitelist on_whitelist)
    : pin_dir_(std::move(pin_dir)),
      drill_(drill),
      on_whitelist_(std::move(on_whitelist)),
      file_(state_dir),
      random_(static_cast<uint32_t>(redis::random_seed())) {}

// --- from other threads --------------------------------------------------------------------------

void RlSync::follow(RlMember member) {
    const std::lock_guard guard(mutex_);
    next_member_ = std::move(member);
}

RlStanding RlSync::standing() const {
    const std::lock_guard guard(mutex_);
    return standing_;
}

// --- in its own thread ---------------------------------------------------------------------------

bool RlSync::step() {
    std::optional<RlMember> member;
    {
        const std::lock_guard guard(mutex_);
        member = std::exchange(next_member_, std::nullopt);
    }
    if (member && (*member != member_ || !is_begun_))
        begin(*std::move(member));
    const auto now = Clock::now();
    if (!is_begun_ || now < due_)
        return false;
    due_ = now + milliseconds(std::uniform_int_distribution(kPoll.count() * 9 / 10,
                                                            kPoll.count() * 11 / 10)(random_));
    if (redis_) {
        const Status may_ask = sound_ ? drill_.check() : sound_;
        note(may_ask ? poll() : may_ask, now);
    }
    const Status put = put_whitelist();
    {
        const std::lock_guard guard(mutex_);
        if (!put)
            standing_.whitelist_error = put.error().message;
    }
    save();
    return publish();
}

void RlSync::begin(RlMember member) {
    const bool is_same_place =
        is_begun_ && member.redis == member_.redis &&
        member.settings.has_value() == member_.settings.has_value() &&
        (!member.settings || member.settings->prefix == member_.settings->prefix);
    const bool has_whitelist = member_.settings && member_.settings->whitelist;
    member_ = std::move(member);
    due_ = {};
    keys_ = member_.settings ? keys_of(member_) : std::vector<std::string>();
    sound_ = {};
    if (keys_.size() > kMostKeys) {
        sound_ = failed("routes and ASes make " + std::to_string(keys_.size()) +
                            " keys, which is more than " + std::to_string(kMostKeys),
                        "name fewer in [rl]");
        keys_.clear();
    }
    if (!is_same_place) {
        redis_.reset();
        book_.clear();
        // What another place said is nothing that holds here; the first time it is this one's.
        if (auto kept = file_.load(); kept && !is_begun_ && member_.settings)
            book_ = *std::move(kept);
        if (member_.settings && member_.redis) {
            auto redis = Redis::open(redis_options(*member_.redis));
            if (redis)
                redis_.emplace(*std::move(redis));
            else
                sound_ = redis.error();
        }
    }
    std::erase_if(
        book_, [&](const auto& known) { return !std::ranges::binary_search(keys_, known.first); });
    const bool follows_whitelist = member_.settings && member_.settings->whitelist;
    if (!is_same_place || has_whitelist != follows_whitelist) {
        whitelist_ = {};
        whitelist_length_ = -1;
        missed_.reset();
        // With none to follow the gate is to have none; else it keeps what it has until Redis says.
        whitelisted_.reset();
    }
    is_begun_ = true;
    if (!member_.settings)
        file_.forget();
    const std::lock_guard guard(mutex_);
    standing_.is_followed = member_.settings.has_value();
    standing_.users_per_source =
        member_.settings ? member_.settings->users_per_source : std::nullopt;
    standing_.error = sound_ ? std::string() : sound_.error().message;
    standing_.whitelist = whitelist_;
    standing_.whitelist_error.clear();
}

Status RlSync::poll() {
    const std::string& prefix = member_.settings->prefix;
    std::vector<Command> commands;
    for (const std::string& key : keys_) {
        Command fields{"HMGET", prefix + key};
        for (const RlField& field : kRlFields)
            fields.add(field.name);
        commands.push_back(std::move(fields));
        commands.push_back({"PTTL", prefix + key});
    }
    if (member_.settings->whitelist)
        commands.push_back({"HLEN", prefix + std::string(kRlWhitelist)});
    if (commands.empty())
        return {};
    const auto replies = redis_->run(commands);
    if (!replies)
        return replies.error();
    if (const Status taken = take_numbers(*replies); !taken)
        return taken;
    return member_.settings->whitelist ? take_whitelist(replies->back()) : Status();
}

// What is wrong with one key is told of that key; who may read none is told so once.
Status RlSync::take_numbers(std::span<const Reply> replies) {
    const auto now = Clock::now();
    for (size_t i = 0; i < keys_.size(); ++i) {
        const Reply& fields = replies[2 * i];
        if (fields.error_word() == "NOPERM")
            return fields.check();
        if (redis::is_out_of_service(fields) || fields.error_word() == "UNREACHABLE")
            continue;
        RlNumbers inherited = member_.settings->local;
        if (const auto base = base_of(keys_[i]))
            inherited = inherit(*base, inherited);
        see(book_[keys_[i]], fields, replies[2 * i + 1], inherited, member_.settings->base_after,
            now);
    }
    return {};
}

// Of the route whose AS this is a key of.
std::optional<RlNumbers> RlSync::base_of(const std::string& key) const {
    const size_t asn = key.find(":asn:");
    const auto known = book_.find(key.substr(0, asn));
    return asn == std::string::npos || known == book_.end() ? std::nullopt
                                                            : known->second.value(Clock::now());
}

Status RlSync::take_whitelist(const Reply& length) {
    const auto now = Clock::now();
    const auto members = length.as_integer();
    Status taken = members ? Status() : members.error();
    // One that is gone may be on its way back.
    if (members && *members == 0 && !whitelist_.addresses.empty()) {
        missed_ = missed_.value_or(now);
        if (now - *missed_ < kRewrite)
            return {};
    }
    missed_.reset();
    if (members && *members == whitelist_length_ && now < whitelist_due_)
        return {};
    if (members) {
        taken = *members > static_cast<int64_t>(kMostRlWhitelisted)
                    ? Status(failed("it has " + std::to_string(*members) +
                                    " members, of which at most " +
                                    std::to_string(kMostRlWhitelisted) + " are read"))
                    : read_whitelist();
        if (taken)
            whitelist_length_ = *members;
        whitelist_due_ = now + kWhitelistPoll;
    }
    const std::lock_guard guard(mutex_);
    standing_.whitelist = whitelist_;
    standing_.whitelist_error = taken ? std::string() : taken.error().message;
    return {};
}

Status RlSync::read_whitelist() {
    const auto reply =
        redis_->run(Command{"HKEYS", member_.settings->prefix + std::string(kRlWhitelist)});
    const auto members = reply ? reply->as_array() : reply.error();
    if (!members)
        return members.error();
    RlWhitelist read;
    for (const Reply& member : *members)
        if (const auto text = member.as_text())
            read.add(*text);
    whitelist_ = std::move(read);
    return {};
}

// Makes the gate's list what was read: in this gate, and in any other that takes its place.
Status RlSync::put_whitelist() {
    const bool follows = member_.settings && member_.settings->whitelist;
    const auto pin = gate_pin(pin_dir_);
    if (!pin || (follows && whitelist_length_ == -1) ||
        (whitelisted_ == pin && put_ == whitelist_.addresses))
        return {};
    auto tables = open_gate(pin_dir_);
    if (!tables)
        return tables.error();
    const auto before = whitelisted_in(*tables);
    if (!before)
        return before.error();
    if (*before != whitelist_.addresses) {
        auto gate = open_gate_to_write(pin_dir_, kPatience);
        if (!gate)
            return gate.error().busy ? Status() : gate.error();
        std::vector<RuleEntry> entries;
        for (const IpAddress& address : whitelist_.addresses)
            entries.push_back({.prefix = Prefix::host(address), .kind = RuleKind::allow});
        on_whitelist_(before->size(), entries.size());
        const auto replaced =
            SourceRules(gate->tables)
                .replace_list(kRlList, entries,
                              {.reason = "the whitelist in Redis", .actor = std::string(kRlList)});
        if (!replaced)
            return replaced.error();
    }
    put_ = whitelist_.addresses;
    whitelisted_ = pin;
    return {};
}

void RlSync::save() {
    const Status saved = member_.settings ? file_.save(book_) : Status();
    const std::lock_guard guard(mutex_);
    standing_.unsaved = saved ? std::string() : saved.error().message;
}

bool RlSync::publish() {
    auto services = rl_services(member_, book_);
    // A temporary value ends on time.
    for (const RlService& service : services)
        for (const RlRoute& route : service.routes)
            if (route.ends_in)
                due_ = std::min(due_, Clock::now() + *route.ends_in);
    const std::lock_guard guard(mutex_);
    const bool is_news = have_other_limits(services, standing_.services);
    standing_.services = std::move(services);
    standing_.is_heard = true;
    return is_news;
}

void RlSync::note(const Status& status, Clock::time_point now) {
    const std::lock_guard guard(mutex_);
    standing_.error = status ? std::string() : status.error().message;
    if (status)
        standing_.synced = now;
}

}  // namespace sluice
