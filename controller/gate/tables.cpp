#include "gate/tables.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <ctime>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "gate/line_view.h"
#include "gate/pin_set.h"
#include "gate/table_list.h"
#include "sluice.skel.h"

namespace sluice {

namespace {

constexpr std::string_view kAttachAnew =
    "start this version's sluiced, which takes it over; or detach it and attach anew";

struct SkeletonDeleter {
    void operator()(sluice_bpf* skeleton) const noexcept { sluice_bpf__destroy(skeleton); }
};
using Skeleton = std::unique_ptr<sluice_bpf, SkeletonDeleter>;

std::string in_quotes(std::string_view name) {
    return std::string("table ").append(name);
}

// --- layout ------------------------------------------------------------------------------------

// FNV-1a over everything that two versions must agree on before one reads the other's tables.
uint32_t layout_of(const TableSizes& sizes) {
    uint32_t hash = 2166136261U;
    const auto add = [&hash](uint64_t value) {
        for (unsigned shift = 0; shift < 64; shift += 8)
            hash = (hash ^ static_cast<uint32_t>(value >> shift & 0xff)) * 16777619U;
    };
    Tables nowhere;
    (void)visit_tables(nowhere, sizes, [&](const MapShape& shape, auto&) -> Status {
        for (const char c : shape.name)
            add(static_cast<uint8_t>(c));
        add(shape.key_bytes);
        add(shape.value_bytes);
        add(shape.entries);
        return {};
    });
    return hash;
}

Status check_sizes(const TableSizes& sizes) {
    const auto refuse = [](std::string_view name, std::string_view rule) {
        return make_error(ErrorCode::usage, std::string(name).append(" must be ").append(rule));
    };
    for (const auto& [name, value] :
         {std::pair<std::string_view, uint32_t>{"source sets", sizes.source_sets},
          {"window sets", sizes.window_sets},
          {"ban lines", sizes.ban4_lines},
          {"rule lines", sizes.rule_lines}})
        if (!std::has_single_bit(value) || value > 1U << 30)
            return refuse(name, "a power of two");
    if (sizes.services < 1 || sizes.services > SLUICE_MAX_SERVICES + 1)
        return refuse("services", "1 to " + std::to_string(SLUICE_MAX_SERVICES + 1));
    if (sizes.interfaces < 1 || sizes.interfaces > SLUICE_MAX_INTERFACES)
        return refuse("interfaces", "1 to " + std::to_string(SLUICE_MAX_INTERFACES));
    if (sizes.cpus < 1 || sizes.listing < 1)
        return refuse("CPU slots and listing", "at least 1");
    return {};
}

// --- creating ----------------------------------------------------------------------------------

Status load_skeleton(Skeleton& skeleton, const TableSizes& sizes) {
    bpf_program* program = nullptr;
    // Only the maps are wanted: the program is loaded where it is attached.
    bpf_object__for_each_program(program, skeleton->obj) {
        bpf_program__set_autoload(program, false);
    }
    Tables nowhere;
    auto sized = visit_tables(nowhere, sizes, [&](const MapShape& shape, auto&) -> Status {
        bpf_map* map = bpf_object__find_map_by_name(skeleton->obj, std::string(shape.name).c_str());
        if (map == nullptr)
            return failed("the BPF object has no " + in_quotes(shape.name));
        if (shape.entries > std::numeric_limits<uint32_t>::max())
            return failed(in_quotes(shape.name) + " would need " + std::to_string(shape.entries) +
                              " elements",
                          "lower the capacity");
        if (bpf_map__value_size(map) != shape.value_bytes)
            return failed(in_quotes(shape.name) + " has another structure in the BPF object");
        const int rc = bpf_map__set_max_entries(map, static_cast<uint32_t>(shape.entries));
        return rc == 0 ? Status{} : from_errno(rc, "size " + in_quotes(shape.name));
    });
    if (!sized)
        return sized;
    if (const int rc = sluice_bpf__load(skeleton.get()); rc != 0)
        return from_errno(
            rc, "create the gate's tables",
            rc == -ENOMEM  ? "lower [sources] capacity"
            : rc == -EPERM ? "run it as root: sudo sluicectl …; or with CAP_BPF and CAP_NET_ADMIN"
                           : "");
    return {};
}

Result<UniqueFd> duplicate(int fd, std::string_view name) {
    UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!copy)
        return from_errno(errno, "duplicate " + in_quotes(name));
    return copy;
}

template <class T>
Status take_map(UniqueFd fd, const MapShape& shape, FlatTable<T>& member) {
    auto table = FlatTable<T>::map(std::move(fd), shape.entries, shape.name);
    if (!table)
        return table.error();
    member = std::move(*table);
    return {};
}

Status take_map(UniqueFd fd, const MapShape&, UniqueFd& member) {
    member = std::move(fd);
    return {};
}

// The live part starts small and grows when that is needed.
uint64_t first_view(uint32_t lines) {
    return LineView::make(0, std::min(lines, LineView::kFewestLines));
}

Status fill_settings(sluice_gate& gate, const TableSizes& sizes) {
    if (::getrandom(&gate.seed, sizeof(gate.seed), 0) != sizeof(gate.seed))
        return from_errno(errno, "draw the hash seed");
    // Only odd multipliers lose nothing.
    gate.seed.high |= 1;
    gate.seed.low |= 1;
    gate.seed.mix |= 1;
    gate.seed.salt |= 1;

    timespec tick{};
    ::clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    gate.tick_ns = static_cast<uint32_t>(tick.tv_sec * 1'000'000'000 + tick.tv_nsec);
    gate.lag_ns = 2 * gate.tick_ns;  // one is not enough: a late tick shows up to two
    gate.abi_version = SLUICE_ABI_VERSION;
    gate.layout = layout_of(sizes);
    gate.created_s = static_cast<uint64_t>(::time(nullptr));
    gate.next_version = 1;
    gate.ban4_view = first_view(sizes.ban4_lines);
    gate.rule_view = first_view(sizes.rule_lines);
    gate.mode = sluice_switch_make(SLUICE_MODE_OBSERVE, SLUICE_MODE_OBSERVE, SLUICE_MODE_OBSERVE,
                                   SLUICE_ORIGIN_POLICY, 0, 0);
    return {};
}

// --- opening -----------------------------------------------------------------------------------

Result<UniqueFd> open_pin(const std::string& pin_dir, std::string_view name) {
    const auto path = pin_path(pin_dir, name);
    UniqueFd fd(bpf_obj_get(path.c_str()));
    if (fd)
        return fd;
    const int error_number = errno;
    if (error_number != ENOENT)
        return from_errno(error_number, "open " + path,
                          error_number == EPERM || error_number == EACCES ? "run as root" : "");
    Error error = failed(path + " is missing", std::string(kAttachAnew));
    error.another_version = true;
    return error;
}

Result<bpf_map_info> map_info(int fd, std::string_view name) {
    bpf_map_info info{};
    uint32_t length = sizeof(info);
    if (bpf_obj_get_info_by_fd(fd, &info, &length) != 0)
        return from_errno(errno, "look at " + in_quotes(name));
    return info;
}

Result<uint32_t> entries_of(const std::string& pin_dir, std::string_view name) {
    auto fd = open_pin(pin_dir, name);
    if (!fd)
        return fd.error();
    const auto info = map_info(fd->get(), name);
    if (!info)
        return info.error();
    return info->max_entries;
}

Result<TableSizes> pinned_sizes(const std::string& pin_dir) {
    TableSizes sizes;
    Status status;
    const auto read = [&](std::string_view name, uint32_t divisor, uint32_t& size) {
        if (!status)
            return;
        const auto entries = entries_of(pin_dir, name);
        if (!entries)
            status = entries.error();
        else
            size = *entries / divisor;
    };
    read("sources", 1, sizes.source_sets);
    read("windows", 1, sizes.window_sets);
    read("switches", 1, sizes.services);
    read("cpus", 1, sizes.cpus);
    read("counters", sizes.cpus * sizes.services, sizes.interfaces);
    read("ban4_lines", 2, sizes.ban4_lines);
    read("rule_lines", 2, sizes.rule_lines);
    read("listing", 1, sizes.listing);
    if (!status)
        return status.error();
    return sizes;
}

Error another_version(std::string_view what) {
    Error error = failed(std::string(what), std::string(kAttachAnew));
    error.another_version = true;
    return error;
}

template <class Member>
Status open_table(const std::string& pin_dir, const MapShape& shape, Member& member) {
    auto fd = open_pin(pin_dir, shape.name);
    if (!fd)
        return fd.error();
    const auto info = map_info(fd->get(), shape.name);
    if (!info)
        return info.error();
    if (info->key_size != shape.key_bytes || info->value_size != shape.value_bytes ||
        info->max_entries != shape.entries)
        return another_version(in_quotes(shape.name) + " in " + pin_dir + " has another layout");
    return take_map(std::move(*fd), shape, member);
}

// Settings are read by themselves first: of another version, nothing else can be trusted.
Status check_version(const std::string& pin_dir) {
    auto fd = open_pin(pin_dir, "gate");
    if (!fd)
        return fd.error();
    const auto info = map_info(fd->get(), "gate");
    if (!info)
        return info.error();
    if (std::string_view(info->name) != "gate")
        return failed("the pins in " + pin_dir + " are not those of a gate",
                      "name another directory: --pin-dir DIR");
    if (info->value_size != sizeof(sluice_gate) || info->max_entries != 1)
        return another_version("the gate in " + pin_dir + " is of another version");
    const auto gate = FlatTable<sluice_gate>::map(std::move(*fd), 1, "gate");
    if (!gate)
        return gate.error();
    if (const uint32_t version = (*gate)[0].abi_version; version != SLUICE_ABI_VERSION)
        return another_version("the gate in " + pin_dir + " has ABI version " +
                               std::to_string(version) + ", this program speaks " +
                               std::to_string(SLUICE_ABI_VERSION));
    return {};
}

int fd_of(const UniqueFd& map) {
    return map.get();
}
template <class T>
int fd_of(const FlatTable<T>& map) {
    return map.fd();
}

// Pinned last and removed first: whatever else is there without it is left over from a process that
// was killed.
bool is_complete(const std::string& pin_dir) {
    struct stat info {};
    return ::stat(pin_path(pin_dir, "gate").c_str(), &info) == 0;
}

}  // namespace

uint64_t TableSizes::memory() const {
    constexpr uint64_t kBucketBytes = 16;
    uint64_t bytes = 0;
    Tables nowhere;
    (void)visit_tables(nowhere, *this, [&](const MapShape& shape, auto&) -> Status {
        switch (shape.storage) {
            case MapStorage::array:
                bytes += shape.entries * ((shape.value_bytes + 7U) / 8 * 8);
                break;
            case MapStorage::hash:
                bytes += std::bit_ceil(shape.entries) * kBucketBytes;
                break;
            case MapStorage::ring:
                bytes += shape.entries;
                break;
        }
        return {};
    });
    return bytes;
}

Result<Tables> Tables::create(const std::string& pin_dir, const TableSizes& sizes) {
    if (const auto sound = check_sizes(sizes); !sound)
        return sound.error();
    PinSet pins(pin_dir);
    if (const auto made = pins.make_dir(); !made)
        return made.error();
    if (is_complete(pin_dir))
        return failed("there is a gate in " + pin_dir + " already", "detach it first");

    Skeleton skeleton(sluice_bpf__open());
    if (skeleton == nullptr)
        return from_errno(errno, "open the BPF object");
    if (const auto loaded = load_skeleton(skeleton, sizes); !loaded)
        return loaded.error();

    Tables tables;
    tables.sizes = sizes;
    tables.pin_dir = pin_dir;
    const auto taken =
        visit_tables(tables, sizes, [&](const MapShape& shape, auto& member) -> Status {
            const int fd =
                bpf_object__find_map_fd_by_name(skeleton->obj, std::string(shape.name).c_str());
            auto copy = duplicate(fd, shape.name);
            if (!copy)
                return copy.error();
            return take_map(std::move(*copy), shape, member);
        });
    if (!taken)
        return taken.error();
    if (const auto filled = fill_settings(tables.settings(), sizes); !filled)
        return filled.error();

    const auto pinned = visit_tables(tables, sizes, [&](const MapShape& shape, auto& member) {
        return pins.pin(fd_of(member), shape.name);
    });
    if (!pinned)
        return pinned.error();
    pins.keep();
    return tables;
}

Result<Tables> Tables::open_listing(const std::string& pin_dir) {
    Tables tables;
    tables.pin_dir = pin_dir;
    const auto entries = entries_of(pin_dir, "listing");
    if (!entries)
        return entries.error();
    tables.sizes.listing = *entries;
    const auto taken =
        visit_tables(tables, tables.sizes, [&](const MapShape& shape, auto& member) -> Status {
            if (shape.name != "listing" && shape.name != "list_names" && shape.name != "notes")
                return {};
            return open_table(pin_dir, shape, member);
        });
    if (!taken)
        return taken.error();
    return tables;
}

Result<Tables> Tables::open(const std::string& pin_dir) {
    if (!is_complete(pin_dir))
        return make_error(ErrorCode::not_found, "there is no gate in " + pin_dir,
                          "attach one: sluicectl attach IFACE");
    if (const auto version = check_version(pin_dir); !version)
        return version.error();
    const auto sizes = pinned_sizes(pin_dir);
    if (!sizes)
        return sizes.error();

    Tables tables;
    tables.sizes = *sizes;
    tables.pin_dir = pin_dir;
    const auto taken =
        visit_tables(tables, *sizes, [&](const MapShape& shape, auto& member) -> Status {
            return open_table(pin_dir, shape, member);
        });
    if (!taken)
        return taken.error();
    if (tables.settings().layout != layout_of(*sizes))
        return another_version("the gate in " + pin_dir + " has another layout");
    return tables;
}

Result<std::vector<std::string>> Tables::pin_missing() const {
    std::vector<std::string> missing;
    // The visitor is the same for those who fill the tables.
    auto& tables = const_cast<Tables&>(*this);
    const Status pinned =
        visit_tables(tables, sizes, [&](const MapShape& shape, auto& member) -> Status {
            const std::string path = pin_path(pin_dir, shape.name);
            if (shape.name == "gate" || ::access(path.c_str(), F_OK) == 0)
                return {};
            if (bpf_obj_pin(fd_of(member), path.c_str()) != 0)
                return from_errno(errno, "pin " + path);
            missing.emplace_back(shape.name);
            return {};
        });
    if (!pinned)
        return pinned.error();
    return missing;
}

std::optional<uint64_t> gate_pin(const std::string& pin_dir) {
    struct stat pin {};
    return ::stat((pin_dir + "/gate").c_str(), &pin) == 0 ? std::optional<uint64_t>(pin.st_ino)
                                                          : std::nullopt;
}

}  // namespace sluice
