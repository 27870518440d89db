#include "gate/listing.h"

#include <algorithm>
#include <bitset>
#include <cstring>
#include <future>
#include <iterator>
#include <unordered_set>

#include "base/text.h"
#include "gate/table_list.h"

namespace sluice {

namespace {

constexpr std::string_view kFleetMark = "fleet/";
static_assert(kFleetMark.size() + SLUICE_NAME_BYTES <= SLUICE_LIST_NAME_BYTES);

constexpr std::array kKinds = {RuleKind::ban, RuleKind::allow, RuleKind::protect,
                               RuleKind::classify};
constexpr unsigned kMappedBits = 96;
constexpr uint32_t kNoteTries = 8;
// A million are not all copied into the form that the kernel takes at the same time.
constexpr size_t kPutAtOnce = 4096;
// The kernel takes over a second for a million; for so many, a tenth of that.
constexpr size_t kWorthAThread = 1U << 16;

// FNV-1a; 0 means "no note".
uint32_t note_hash(const sluice_note& note) {
    uint32_t hash = 2166136261U;
    for (const char c : note.text)
        hash = (hash ^ static_cast<uint8_t>(c)) * 16777619U;
    return hash == 0 ? 1 : hash;
}

// At most so many bytes, without cutting through a character.
std::string_view cut(std::string_view text, size_t most) {
    if (text.size() <= most)
        return text;
    while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80)
        --most;
    return text.substr(0, most);
}

constexpr size_t kNoteRoom = SLUICE_NOTE_BYTES - 2;  // each text has a closing zero
constexpr size_t kActorRoom = kNoteRoom / 2;

sluice_note make_note(std::string_view actor, std::string_view reason) {
    sluice_note note{};
    reason = cut(reason, reason_room(actor));
    actor = cut(actor, kActorRoom);
    std::copy(actor.begin(), actor.end(), note.text);
    std::copy(reason.begin(), reason.end(), note.text + actor.size() + 1);
    return note;
}

}  // namespace

size_t reason_room(std::string_view actor) {
    return kNoteRoom - cut(actor, kActorRoom).size();
}

RuleKey Member::rule_key() const {
    std::array<uint8_t, 16> bytes{};
    std::copy(std::begin(key.address), std::end(key.address), bytes.begin());
    return {to_sluice(IpAddress::from_bytes(bytes)), key.length};
}

int Member::compare(const Member& a, const Member& b) {
    return std::memcmp(&a.key, &b.key, sizeof(a.key));
}

sluice_listing_key listing_key(const Prefix& prefix, RuleKind kind, uint16_t list) {
    sluice_listing_key key{};
    const auto& bytes = prefix.address().bytes();
    std::copy(bytes.begin(), bytes.end(), key.address);
    const bool ipv4 = prefix.family() == Family::ipv4;
    key.length = static_cast<uint8_t>(prefix.length() + (ipv4 ? kMappedBits : 0));
    key.kind = static_cast<uint8_t>(kind);
    key.list = list;
    return key;
}

std::string fleet_list(std::string_view source) {
    return std::string(kFleetMark).append(source);
}

bool is_fleet_list(std::string_view list) {
    return list.starts_with(kFleetMark);
}

std::string_view source_of(std::string_view list) {
    return is_fleet_list(list) ? list.substr(kFleetMark.size()) : list;
}

Listing::Listing(const Tables& tables)
    : tables_(&tables),
      entries_(tables.listing.get(), "listing", tables.sizes.listing),
      notes_(tables.notes.get(), "notes", kNotes) {}

// --- lists -------------------------------------------------------------------------------------

Status Listing::begin() {
    std::array<uint32_t, SLUICE_MAX_LISTS> keys{};
    std::array<sluice_list_name, SLUICE_MAX_LISTS> names{};
    uint32_t position = 0;
    uint32_t count = SLUICE_MAX_LISTS;
    if (bpf_map_lookup_batch(tables_->list_names.fd(), nullptr, &position, keys.data(),
                             names.data(), &count, nullptr) != 0 &&
        errno != ENOENT)
        return from_errno(errno, "read table list_names");
    for (uint32_t list = 0; list < SLUICE_MAX_LISTS; ++list)
        names_[list].assign(names[list].name,
                            ::strnlen(names[list].name, sizeof(names[list].name)));
    return {};
}

std::optional<uint16_t> Listing::find_list(std::string_view name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (name.empty() || found == names_.end())
        return std::nullopt;
    return static_cast<uint16_t>(found - names_.begin());
}

std::string Listing::list_name(uint16_t list) const {
    return list < names_.size() ? names_[list] : std::string{};
}

Status Listing::make_list(uint16_t list, std::string_view name) {
    sluice_list_name value{};
    std::memcpy(value.name, name.data(), name.size());
    const uint32_t key = list;
    if (bpf_map_update_elem(tables_->list_names.fd(), &key, &value, BPF_ANY) != 0)
        return from_errno(errno, "write table list_names");
    names_[list] = name;
    return {};
}

Result<uint16_t> Listing::find_or_make_list(std::string_view name) {
    const std::string_view source = source_of(name);
    if (source.empty() || source.size() >= SLUICE_NAME_BYTES ||
        source.find('\0') != std::string_view::npos)
        return make_error(ErrorCode::usage, in_quotes(name) + " cannot be the name of a list",
                          "use 1 to " + std::to_string(SLUICE_NAME_BYTES - 1) + " characters");
    if (const auto found = find_list(name))
        return *found;
    auto free = std::find(names_.begin(), names_.end(), std::string{});
    if (free == names_.end()) {
        // A name is given away only when nothing is listed under it any more.
        std::bitset<SLUICE_MAX_LISTS> used;
        const auto read =
            entries_.for_each([&](const sluice_listing_key& key, const sluice_listing&) {
                used.set(key.list % SLUICE_MAX_LISTS);
            });
        if (!read)
            return read.error();
        size_t list = 0;
        while (list < SLUICE_MAX_LISTS && used.test(list))
            ++list;
        if (list == SLUICE_MAX_LISTS)
            return failed("there are " + std::to_string(SLUICE_MAX_LISTS) +
                              " lists already, none of them empty",
                          "flush one: sluicectl bans flush --source NAME");
        free = names_.begin() + static_cast<ptrdiff_t>(list);
    }
    const auto list = static_cast<uint16_t>(free - names_.begin());
    if (auto made = make_list(list, name); !made)
        return made.error();
    return list;
}

// --- members -----------------------------------------------------------------------------------

std::vector<Member> Listing::members(const RuleKey& key, RuleKind kind) const {
    std::vector<Member> found;
    auto listed = listing_key(key.prefix(), kind, 0);
    for (uint16_t list = 0; list < names_.size(); ++list) {
        if (names_[list].empty())
            continue;
        listed.list = list;
        if (const auto entry = entries_.find(listed))
            found.push_back({listed, *entry});
    }
    return found;
}

std::vector<Member> Listing::members(const RuleKey& key) const {
    std::vector<Member> found;
    for (const auto kind : kKinds) {
        const auto some = members(key, kind);
        found.insert(found.end(), some.begin(), some.end());
    }
    return found;
}

Result<std::vector<Member>> Listing::all() const {
    std::vector<Member> found;
    const auto read = for_each([&](const Member& member) { found.push_back(member); });
    if (!read)
        return read.error();
    return found;
}

Status Listing::put(const Member& member) {
    return entries_.put(member.key, member.entry);
}

Status Listing::put_all(std::span<const Member> members, std::span<const Member> before) {
    const size_t half = members.size() < kWorthAThread ? 0 : members.size() / 2;
    std::future<Status> other;
    if (half != 0)
        other = std::async([&] { return put_some(members.first(half)); });
    Status put = put_some(members.subspan(half));
    if (half != 0)
        if (const Status first = other.get(); !first)
            put = first;
    if (!put)
        take_back(members, before);
    return put;
}

Status Listing::put_some(std::span<const Member> members) {
    std::vector<sluice_listing_key> keys;
    std::vector<sluice_listing> values;
    for (size_t done = 0; done < members.size();) {
        const auto some = members.subspan(done, std::min(members.size() - done, kPutAtOnce));
        keys.clear();
        values.clear();
        for (const auto& member : some) {
            keys.push_back(member.key);
            values.push_back(member.entry);
        }
        done += some.size();
        if (auto put = entries_.put_all(keys, values); !put)
            return put;
    }
    return {};
}

void Listing::take_back(std::span<const Member> members, std::span<const Member> before) {
    for (const auto& member : before)
        (void)entries_.put(member.key, member.entry);
    std::vector<Member> fresh;
    std::set_difference(members.begin(), members.end(), before.begin(), before.end(),
                        std::back_inserter(fresh));
    erase_all(fresh);
}

void Listing::erase_all(std::span<const Member> members) {
    std::vector<sluice_listing_key> keys;
    keys.reserve(members.size());
    for (const auto& member : members)
        keys.push_back(member.key);
    entries_.erase_all(keys);
}

// --- notes -------------------------------------------------------------------------------------

// The key of the note, made where it is missing; nothing where the table is full.
std::optional<uint32_t> Listing::put_note(const sluice_note& note) {
    uint32_t key = note_hash(note);
    for (uint32_t i = 0; i < kNoteTries; ++i, ++key) {
        const auto there = notes_.find(key);
        if (there && std::memcmp(&*there, &note, sizeof(note)) == 0)
            return key;
        if (there || key == 0)
            continue;
        if (notes_.put(key, note))
            return key;
        return std::nullopt;
    }
    return std::nullopt;
}

void Listing::drop_unused_notes() {
    std::unordered_set<uint32_t> used;
    const auto read = entries_.for_each(
        [&](const sluice_listing_key&, const sluice_listing& entry) { used.insert(entry.note); });
    std::vector<uint32_t> unused;
    const auto notes = notes_.for_each([&](uint32_t key, const sluice_note&) {
        if (!used.contains(key))
            unused.push_back(key);
    });
    if (read && notes)
        notes_.erase_all(unused);
}

uint32_t Listing::note(std::string_view actor, std::string_view reason) {
    if (actor.empty() && reason.empty())
        return 0;
    const auto text = make_note(actor, reason);
    if (const auto key = put_note(text))
        return *key;
    // Better a ban without its reason than a reason to refuse the ban.
    drop_unused_notes();
    return put_note(text).value_or(0);
}

RuleOrigin Listing::origin(const Member& member) const {
    RuleOrigin origin{list_name(member.key.list), {}, {}};
    const uint32_t key = member.entry.note;
    const auto note = key == 0 ? std::nullopt : notes_.find(key);
    if (!note)
        return origin;
    origin.actor.assign(note->text, ::strnlen(note->text, sizeof(note->text)));
    const size_t rest = std::min(origin.actor.size() + 1, sizeof(note->text));
    const char* const reason = note->text + rest;
    origin.reason.assign(reason, ::strnlen(reason, sizeof(note->text) - rest));
    return origin;
}

}  // namespace sluice
