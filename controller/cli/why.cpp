// sluicectl why: what would happen to an address's next packet, and by whose word.
#include "gate/why.h"

#include <charconv>

#include "base/text.h"
#include "cli/command_line.h"
#include "cli/enforcement.h"
#include "cli/format.h"
#include "cli/prefix_argument.h"
#include "cli/rl_json.h"
#include "gate/counters.h"

namespace sluice::cli {

namespace {

struct Options {
    std::string address;
    std::optional<std::string> service;
    std::optional<std::string> protocol;
    std::optional<std::string> port;
    std::optional<std::string> destination;
};

Error usage(std::string message, std::string hint = {}) {
    return make_error(ErrorCode::usage, std::move(message), std::move(hint));
}

Result<uint8_t> parse_protocol(const std::string& text) {
    constexpr std::array<std::pair<std::string_view, uint8_t>, 4> kNames = {
        {{"tcp", IPPROTO_TCP},
         {"udp", IPPROTO_UDP},
         {"icmp", IPPROTO_ICMP},
         {"icmp6", IPPROTO_ICMPV6}}};
    for (const auto& [name, number] : kNames)
        if (text == name)
            return number;
    uint8_t number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, number);
    if (failure != std::errc{} || stop != end)
        return usage("--proto: " + in_quotes(text) + " is no protocol",
                     "use tcp, udp, icmp, icmp6 or a number up to 255");
    return number;
}

Result<uint16_t> parse_port(const std::string& text) {
    uint16_t port = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, port);
    if (failure == std::errc{} && stop == end)
        return port;
    const size_t slash = text.find('/');
    return usage("--port: " + in_quotes(text) + " is no port",
                 slash == std::string::npos ? "use a number up to 65535"
                                            : "write --proto " + text.substr(0, slash) +
                                                  " --port " + text.substr(slash + 1));
}

Result<IpAddress> parse_address(const std::string& text) {
    auto address = IpAddress::parse(text);
    if (!address)
        return usage(address.error().message, address.error().hint);
    return address;
}

Result<Question> read(const Options& options) {
    Question question;
    if (options.service && (options.protocol || options.port || options.destination))
        return usage(
            "--service already says where to; leave out --proto, --port and "
            "--destination");
    question.service = options.service;
    if (options.protocol) {
        const auto protocol = parse_protocol(*options.protocol);
        if (!protocol)
            return protocol.error();
        question.protocol = *protocol;
    } else if (options.port) {
        question.protocol = IPPROTO_TCP;
    }
    const bool has_ports = question.protocol == IPPROTO_TCP || question.protocol == IPPROTO_UDP;
    if (options.port && !has_ports)
        return usage("--port needs --proto tcp or --proto udp");
    if (has_ports && !options.port)
        return usage("--proto " + *options.protocol + " needs a --port");
    if (options.destination && !question.protocol)
        return usage("--destination needs --proto or --port");
    if (options.port) {
        const auto port = parse_port(*options.port);
        if (!port)
            return port.error();
        question.port = *port;
    }
    if (options.destination) {
        const auto destination = parse_address(*options.destination);
        if (!destination)
            return destination.error().with_context("--destination");
        question.destination = *destination;
    }
    return question;
}

Json text_or_null(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}

Result<Answer> run(const Options& options, const Session& session) {
    const auto address = parse_address(options.address);
    if (!address)
        return address.error();
    const auto question = read(options);
    if (!question)
        return question.error();
    if (question->destination && question->destination->family() != address->family())
        return usage("--destination: " + question->destination->to_string() +
                         " is not of the family of " + address->to_string(),
                     "no packet goes from IPv4 to IPv6 or back; name two addresses of one family");
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    Tables& tables = **gate;
    auto found = why(tables, *address, *question);
    if (!found)
        return found.error();
    const auto enforcement = enforcement_of(tables);
    if (!enforcement)
        return enforcement.error();
    std::vector<std::string> idle;
    for (const std::string& interface : enforcement->idle)
        idle.push_back("not on " + interface);
    if (!enforcement->acts && enforcement->mode != Mode::off) {
        idle.push_back("if the gate acted: " + found->verdict);
        found->verdict = counter_name(SLUICE_pass_mode_off);
    }
    if (session.rl)
        name_rl(session.rl(), *found);
    // That nothing is looked at comes before what would be made of it.
    found->notes.insert(enforcement->acts ? found->notes.end() : found->notes.begin(), idle.begin(),
                        idle.end());
    Answer answer;
    answer.data = {{"address", address->to_string()},
                   {"verdict", found->verdict},
                   {"rule", text_or_null(found->rule)},
                   {"service", text_or_null(found->service)},
                   {"class", text_or_null(found->source_class)},
                   {"policy_version", found->policy_version},
                   {"actor", text_or_null(found->actor)},
                   {"expires_in_s", seconds(found->expires_in)},
                   {"bucket", nullptr},
                   {"acts", enforcement->acts},
                   {"notes", found->notes}};
    if (found->bucket)
        answer.data["bucket"] = {{"rate", found->bucket->rate},
                                 {"burst", found->bucket->burst},
                                 {"available", found->bucket->available}};
    return answer;
}

std::string_view meaning_of(std::string_view verdict) {
    for (uint32_t index = 0; index < SLUICE_COUNTERS; ++index)
        if (counter_name(index) == verdict)
            return counter_meaning(index);
    return "";
}

void show(const Json& data, Screen& screen) {
    const auto verdict = data["verdict"].get<std::string>();
    const bool would = verdict.starts_with("would_"), drop = verdict.starts_with("drop_");
    const std::string meaning(data["acts"] ? meaning_of(verdict) : "the gate acts on no interface");
    screen.line("The next packet of " + data["address"].get<std::string>() +
                    (drop    ? " is dropped: "
                     : would ? " passes, but enforced it would be dropped: "
                             : " passes: ") +
                    meaning + '.',
                drop    ? Style::bad
                : would ? Style::careful
                        : Style::good);
    std::vector<std::pair<std::string_view, Cell>> fields = {{"verdict", verdict}};
    for (const auto& [key, label] :
         {std::pair{"rule", "rule"}, {"service", "service"}, {"class", "class"}, {"actor", "by"}})
        if (!data[key].is_null())
            fields.push_back({label, data[key].get<std::string>()});
    if (!data["expires_in_s"].is_null())
        fields.push_back({"ends", format_expiry(data["expires_in_s"])});
    if (const Json& bucket = data["bucket"]; !bucket.is_null())
        fields.push_back({"left", format_count(bucket["available"].get<uint64_t>()) + " of " +
                                      format_count(bucket["burst"].get<uint64_t>()) + ", at " +
                                      bucket["rate"].get<std::string>()});
    fields.push_back({"policy", "version " + data["policy_version"].dump()});
    screen.fields(fields);
    for (const Json& note : data["notes"])
        screen.item(note.get<std::string>());
}

}  // namespace

void add_why(CommandLine& line) {
    auto options = std::make_shared<Options>();
    CLI::App* app = line.add("why", "What would happen to an address now, and by whose word");
    app->add_option("ADDRESS", options->address, "The source")->required();
    app->add_option("--service", options->service, "Where to: a service")->type_name("NAME");
    app->add_option("--proto", options->protocol, "Or: tcp, udp, icmp, icmp6, a number")
        ->type_name("PROTOCOL");
    app->add_option("--port", options->port,
                    "The port here, of tcp where no --proto says otherwise")
        ->type_name("PORT");
    app->add_option("--destination", options->destination, "The address here")
        ->type_name("ADDRESS");
    line.handle(
        app, [options](const Session& session) { return run(*options, session); }, show);
}

}  // namespace sluice::cli
