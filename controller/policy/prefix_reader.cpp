#include "policy/prefix_reader.h"

#include "base/text.h"

namespace sluice {

std::optional<Prefix> read_prefix(const Field& field, std::vector<std::string>& warnings) {
    const auto text = field.string(kPrefixExample);
    if (!text)
        return std::nullopt;
    bool host_bits_cleared = false;
    const auto prefix = Prefix::parse(*text, &host_bits_cleared);
    if (!prefix) {
        field.fail(prefix.error());
        return std::nullopt;
    }
    if (host_bits_cleared)
        warnings.push_back(field.at().to_string() + ": " + field.name() + ": " + in_quotes(*text) +
                           " has host bits set; taken as \"" + prefix->to_string() + '"');
    return *prefix;
}

}  // namespace sluice
