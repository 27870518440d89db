// The host without its cards: kernel, rights, file systems, clock, what else tunes it.
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "doctor/doctor.h"
#include "gate/program.h"
#include "operate/gate_access.h"
#include "tune/journal.h"

namespace sluice {

namespace {

// Compare-and-swap in BPF, and what the gate's loops ask of the verifier.
constexpr int kOldestMajor = 5, kOldestMinor = 15;

Finding check_kernel(const Patient& /*patient*/) {
    utsname name{};
    int major = 0, minor = 0;
    if (::uname(&name) != 0 || std::sscanf(name.release, "%d.%d", &major, &minor) != 2)
        return skipped("the kernel's version cannot be read");
    const std::string seen = std::string("Linux ") + name.release;
    if (std::pair(major, minor) < std::pair(kOldestMajor, kOldestMinor))
        return failed_check(seen, "the gate needs Linux 5.15: older ones lack atomics in BPF",
                            "install a newer kernel, on Debian: apt install linux-image-amd64");
    // Whoever may not load programs cannot ask for more.
    const auto features = probe_kernel();
    if (!features)
        return passed(seen);
    return passed(seen +
                  (features->multi_buffer ? "" : ", with native mode for frames of one page") +
                  (features->dispatcher ? "" : ", with one XDP program for each interface"));
}

Finding check_capabilities(const Patient& patient) {
    struct Needed {
        unsigned number;
        const char* name;
    };
    constexpr std::array kNeeded = {Needed{12, "CAP_NET_ADMIN"}, Needed{21, "CAP_SYS_ADMIN"},
                                    Needed{38, "CAP_PERFMON"}, Needed{39, "CAP_BPF"}};
    std::string missing;
    for (const Needed& needed : kNeeded)
        // Who has the old, wide one needs no narrow one.
        if (!has_capability(patient.machine, needed.number) &&
            (needed.number < 38 || !has_capability(patient.machine, 21)))
            missing += (missing.empty() ? "" : ", ") + std::string(needed.name);
    if (!missing.empty())
        return failed_check("this user lacks " + missing,
                            "without them no program can be loaded or attached, and much here "
                            "cannot be looked at",
                            doctor_as_root(patient));
    return passed("this user may load and attach programs");
}

Finding check_btf(const Patient& patient) {
    if (patient.machine.has("/sys/kernel/btf/vmlinux"))
        return passed("/sys/kernel/btf/vmlinux is there");
    return warned("/sys/kernel/btf/vmlinux is missing",
                  "the kernel was built without CONFIG_DEBUG_INFO_BTF: tables cannot be shown by "
                  "field, and beside other XDP programs the gate cannot run",
                  "install your distribution's own kernel, on Debian: apt install "
                  "linux-image-amd64");
}

Finding check_jit(const Patient& patient) {
    constexpr const char* kFile = "/proc/sys/net/core/bpf_jit_enable";
    const auto enabled = patient.machine.text(kFile);
    if (!enabled && patient.machine.has(kFile))
        return skipped("net.core.bpf_jit_enable is for root to read", doctor_as_root(patient));
    // Only the first namespace shows it.
    if (!enabled)
        return skipped("net.core.bpf_jit_enable cannot be read here",
                       "run it outside of namespaces and containers");
    if (*enabled == "0")
        return failed_check("net.core.bpf_jit_enable = 0",
                            "each packet is decided by an interpreter, several times slower",
                            "sysctl -w net.core.bpf_jit_enable=1");
    return passed("BPF programs are compiled");
}

// Where pins go: the nearest folder that exists.
std::string existing_part(std::string path) {
    std::error_code ignored;
    while (path.size() > 1 && !std::filesystem::exists(path, ignored))
        path = std::filesystem::path(path).parent_path().string();
    return path.empty() ? "/" : path;
}

Finding check_bpffs(const Patient& patient) {
    const std::string where = existing_part(patient.options.pin_dir);
    if (is_on_bpffs(where))
        return passed("mounted, " + patient.options.pin_dir + " can be pinned to");
    const bool is_usual = patient.options.pin_dir.starts_with("/sys/fs/bpf");
    const std::string mount = is_usual ? "/sys/fs/bpf" : where;
    return failed_check(
        "no bpf file system at " + mount,
        "the gate's tables and programs are pinned there, so that they outlive every program",
        "mount -t bpf bpf " + mount);
}

Finding check_lockdown(const Patient& patient) {
    const auto state = patient.machine.text("/sys/kernel/security/lockdown");
    if (!state)
        return skipped("the kernel's lockdown cannot be read",
                       "mount -t securityfs securityfs /sys/kernel/security");
    const bool is_locked = state->find("[confidentiality]") != std::string::npos;
    const auto acts = std::ranges::any_of(patient.attachments, &Attachment::acts);
    if (is_locked && acts)
        return passed("confidentiality, and the gate runs");
    // The gate asks for none of the kernel's memory, which is what is locked.
    if (is_locked)
        return warned("the kernel is locked down for confidentiality",
                      "most kernels run the gate all the same; some refuse all of BPF",
                      "where attach is not permitted: boot with lockdown=integrity");
    return passed("nothing that concerns BPF is locked");
}

Finding check_clock(const Patient& /*patient*/) {
    timex state{};
    if (::adjtimex(&state) < 0)
        return skipped("the clock's state cannot be read");
    if ((state.status & STA_UNSYNC) != 0)
        return warned("the clock is not synchronised",
                      "logs, audits and schedules carry its time; budgets do not depend on it",
                      "systemctl enable --now systemd-timesyncd");
    return passed("synchronised");
}

Finding check_disk(const Patient& patient) {
    constexpr uint64_t kLeast = 64ULL << 20;  // bans of a full table, twice, and the audit log
    const std::string where = existing_part(patient.options.state_dir);
    struct statvfs disk {};
    if (::statvfs(where.c_str(), &disk) != 0)
        return skipped(where + ": " + std::strerror(errno));
    const uint64_t free = uint64_t{disk.f_bavail} * disk.f_frsize;
    const std::string seen =
        std::to_string(free >> 20) + " MiB free for " + patient.options.state_dir;
    if (free < kLeast)
        return failed_check(seen, "bans would not outlive a reboot, and nothing would be audited",
                            "du -xsh " + where + "/*");
    if ((disk.f_flag & ST_RDONLY) != 0)
        return failed_check(where + " is read-only", "bans would not outlive a reboot",
                            "mount -o remount,rw " + where);
    return passed(seen);
}

Finding check_governor(const Patient& patient) {
    std::string slow;
    bool any = false;
    if (patient.host)
        for (const Cpu& cpu : patient.host->cpus) {
            const std::string policy =
                "/sys/devices/system/cpu/cpu" + std::to_string(cpu.number) + "/cpufreq";
            const auto governor = patient.machine.text(policy + "/scaling_governor");
            any = any || governor;
            // intel_pstate's powersave is what others call schedutil.
            const auto driver = patient.machine.text(policy + "/scaling_driver").value_or("");
            if (governor == "powersave" && !driver.starts_with("intel_pstate") &&
                !driver.starts_with("amd-pstate"))
                slow += (slow.empty() ? "" : ",") + std::to_string(cpu.number);
        }
    if (!any)
        return passed("no frequency scaling here");
    if (!slow.empty())
        return warned("CPUs " + slow + " stay at their lowest frequency",
                      "a flood is met at a fraction of the speed that was paid for",
                      "cpupower frequency-set -g performance");
    return passed("frequencies follow the load");
}

Finding check_irqbalance(const Patient& patient) {
    if (!patient.host)
        return skipped(patient.host.error().message);
    if (!patient.host->irqbalance)
        return passed("does not run");
    const JournalFolder journals(patient.options.state_dir);
    if (const Status readable = journals.is_readable(); !readable)
        return skipped("runs; what is tuned cannot be seen: " + readable.error().message,
                       doctor_as_root(patient));
    const auto tuned = journals.interfaces();
    if (tuned.empty())
        return passed("runs; nothing is tuned that it could move");
    if (patient.machine.has("/etc/systemd/system/irqbalance.service.d/sluice.conf"))
        return passed("runs, with a policy that leaves tuned cards alone");
    return warned(
        "runs without a policy for " + tuned.front(),
        "it moves interrupts every 10 s, away from where they were put",
        "sluicectl tune apply " + tuned.front() + " says which three commands install one");
}

// What posts about tuning recommend, and what it does.
struct BadSetting {
    const char* name;
    bool (*is_bad)(long long value);
    const char* why;
    const char* mend;
};

constexpr std::array kBadSettings = {
    BadSetting{"net/ipv4/tcp_timestamps", [](long long value) { return value == 0; },
               "without timestamps SYN cookies lose options, and ports are reused late",
               "sysctl -w net.ipv4.tcp_timestamps=1"},
    BadSetting{"net/ipv4/tcp_tw_recycle", [](long long value) { return value != 0; },
               "it drops clients behind NAT at random, and was removed from Linux 4.12",
               "sysctl -w net.ipv4.tcp_tw_recycle=0"},
    BadSetting{"net/ipv4/tcp_syncookies", [](long long value) { return value == 0; },
               "a SYN flood from more sources than the gate can tell apart fills the backlog",
               "sysctl -w net.ipv4.tcp_syncookies=1"},
    BadSetting{"net/core/netdev_max_backlog", [](long long value) { return value > 100'000; },
               "such a backlog is seconds of stale packets; native XDP does not use it at all",
               "sysctl -w net.core.netdev_max_backlog=1000"},
    BadSetting{"net/core/somaxconn", [](long long value) { return value < 128; },
               "listeners refuse new connections in every small burst",
               "sysctl -w net.core.somaxconn=4096"},
};

Finding check_sysctls(const Patient& patient) {
    for (const BadSetting& setting : kBadSettings) {
        const auto value = patient.machine.text(std::string("/proc/sys/") + setting.name);
        if (!value || !setting.is_bad(std::atoll(value->c_str())))
            continue;
        std::string name = setting.name;
        for (char& c : name)
            c = c == '/' ? '.' : c;
        return warned(name + " = " + *value, setting.why, setting.mend);
    }
    // "least usual most"
    constexpr long long kMostBuffer = 256LL << 20;
    if (const auto text = patient.machine.text("/proc/sys/net/ipv4/tcp_rmem")) {
        std::istringstream words(*text);
        long long least = 0, usual = 0, most = 0;
        words >> least >> usual >> most;
        if (most > kMostBuffer)
            return warned(
                "net.ipv4.tcp_rmem: up to " + std::to_string(most >> 20) + " MiB a connection",
                "a few thousand slow connections can take all memory",
                "sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456'");
    }
    return passed("none that is known to do harm");
}

constexpr HostCheck kChecks[] = {
    {"kernel", check_kernel},     {"capabilities", check_capabilities},
    {"bpffs", check_bpffs},       {"btf", check_btf},
    {"jit", check_jit},           {"lockdown", check_lockdown},
    {"clock", check_clock},       {"disk", check_disk},
    {"governor", check_governor}, {"irqbalance", check_irqbalance},
    {"sysctls", check_sysctls},
};

}  // namespace

std::span<const HostCheck> host_checks() {
    return kChecks;
}

}  // namespace sluice
