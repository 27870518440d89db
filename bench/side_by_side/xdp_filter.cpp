// xdp-filter of xdp-tools: its own object, as packaged, for exact bans of sources.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <numeric>
#include <utility>

#include "contender.h"

namespace sluice::bench {

namespace {

namespace fs = std::filesystem;

constexpr const char* kObject = "xdpfilt_alw_ip.o";
constexpr const char* kProgram = "xdpfilt_alw_ip";
// Of an entry: the address counts as source, and as destination.
constexpr uint64_t kBothDirections = 3;
// The size that its maps have by themselves.
constexpr uint32_t kPackagedEntries = 10'000;
constexpr uint32_t kBatch = 100'000;

std::string find_object() {
    std::error_code ignored;
    for (const fs::path folder : {"/usr/lib", "/usr/lib64", "/usr/local/lib"}) {
        if (fs::exists(folder / "bpf" / kObject, ignored))
            return folder / "bpf" / kObject;
        for (const auto& entry : fs::directory_iterator(folder, ignored))
            if (fs::exists(entry.path() / "bpf" / kObject, ignored))
                return entry.path() / "bpf" / kObject;
    }
    return {};
}

struct ObjectDeleter {
    void operator()(bpf_object* object) const noexcept { bpf_object__close(object); }
};
using Object = std::unique_ptr<bpf_object, ObjectDeleter>;

class XdpFilter : public Contender {
  public:
    XdpFilter(Lane lane, std::string path) : Contender(std::move(lane)), path_(std::move(path)) {}

    // Packets that it does not drop go to the stack, so rows of packets that pass are not for it.
    [[nodiscard]] bool can(const Setup& setup) const override {
        return setup.bans.count != 0 && !setup.bans.networks && !setup.bans.for_a_time &&
               !setup.tagged;
    }

    Result<uint64_t> passed() override {
        const int map = bpf_object__find_map_fd_by_name(object_.get(), "xdp_stats_map");
        struct Record {
            uint64_t packets, bytes;
        };
        std::vector<Record> records(cpus());
        const uint32_t key = XDP_PASS;
        if (const int rc = bpf_map_lookup_elem(map, &key, records.data()); rc != 0)
            return from_errno(rc, "read xdp-filter's counters");
        return std::accumulate(
            records.begin(), records.end(), uint64_t{0},
            [](uint64_t sum, const Record& record) { return sum + record.packets; });
    }

    Status dump() override {
        const uint32_t key_size = ipv6_ ? 16 : 4;
        std::vector<uint8_t> keys(size_t{kBatch} * key_size);
        std::vector<uint64_t> values(size_t{kBatch} * cpus());
        std::vector<uint8_t> position(16);
        void* from = nullptr;
        for (;;) {
            uint32_t count = kBatch;
            const int rc = bpf_map_lookup_batch(map_, from, position.data(), keys.data(),
                                                values.data(), &count, nullptr);
            if (rc == -ENOENT || (rc != 0 && errno == ENOENT))
                return {};
            if (rc != 0)
                return from_errno(rc, "dump xdp-filter's bans");
            from = position.data();
        }
    }

  protected:
    Status change(const Setup& setup) override {
        Object object(bpf_object__open_file(path_.c_str(), nullptr));
        if (!object)
            return from_errno(errno, "open " + path_);
        const auto entries = std::max(kPackagedEntries, setup.bans.count);
        bpf_map* map = nullptr;
        bpf_object__for_each_map(map, object.get()) {
            // By its own names in the root of the file system it would meet others of its kind.
            bpf_map__set_pin_path(map, nullptr);
            if (std::string_view(bpf_map__name(map)).starts_with("filter_"))
                bpf_map__set_max_entries(map, entries);
        }
        if (const int rc = bpf_object__load(object.get()); rc != 0)
            return from_errno(rc, "load xdp-filter's object");
        ipv6_ = setup.family == Family::ipv6;
        map_ = bpf_object__find_map_fd_by_name(object.get(), ipv6_ ? "filter_ipv6" : "filter_ipv4");
        bpf_program* program = bpf_object__find_program_by_name(object.get(), kProgram);
        if (map_ < 0 || program == nullptr)
            return failed("xdp-filter's object is of another version");
        if (const auto filled = fill(banned(setup)); !filled)
            return filled.error();
        if (const auto attached = lane().attach(bpf_program__fd(program)); !attached)
            return attached.error();
        object_ = std::move(object);
        return {};
    }

  private:
    static size_t cpus() { return static_cast<size_t>(libbpf_num_possible_cpus()); }

    [[nodiscard]] Status fill(const std::vector<Prefix>& prefixes) const {
        const size_t key_size = ipv6_ ? 16 : 4;
        for (size_t done = 0; done < prefixes.size();) {
            auto count = static_cast<uint32_t>(std::min<size_t>(kBatch, prefixes.size() - done));
            std::vector<uint8_t> keys;
            for (size_t i = done; i < done + count; i++) {
                const auto& bytes = prefixes[i].address().bytes();
                keys.insert(keys.end(), bytes.end() - static_cast<std::ptrdiff_t>(key_size),
                            bytes.end());
            }
            const std::vector<uint64_t> values(count * cpus(), kBothDirections);
            done += count;
            if (const int rc =
                    bpf_map_update_batch(map_, keys.data(), values.data(), &count, nullptr);
                rc != 0)
                return from_errno(rc, "load xdp-filter's bans");
        }
        return {};
    }

    std::string path_;
    Object object_;
    int map_ = -1;
    bool ipv6_ = false;
};

}  // namespace

MadeContender make_xdp_filter() {
    const std::string path = find_object();
    if (path.empty())
        return make_error(ErrorCode::not_found, "not installed (Debian: xdp-tools)");
    auto lane = Lane::make();
    if (!lane)
        return lane.error();
    return std::unique_ptr<Contender>(std::make_unique<XdpFilter>(std::move(*lane), path));
}

}  // namespace sluice::bench
