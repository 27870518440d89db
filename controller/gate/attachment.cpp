#include "gate/attachment.h"

#include <net/if.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>

#include "gate/driver_advice.h"
#include "gate/make_anew.h"
#include "gate/program.h"
#include "gate/xdp_link.h"
#include "net/host.h"
#include "net/interface.h"

namespace sluice {

namespace {

// Ethernet header and one tag: what an MTU does not count.
constexpr uint32_t kFrameOverhead = 18;

// Two neighbouring priorities, so that the next generation always stands beside the one before.
// libxdp's default is 50: those who care about order find the gate in front of them.
constexpr unsigned kFirstPriority = 40;
unsigned priority_of(uint32_t generation) {
    return kFirstPriority + generation % 2;
}

std::string link_path(const Tables& tables, uint32_t slot) {
    return tables.pin_dir + "/link_" + std::to_string(slot);
}

// The table has room for more interfaces than the others were made for.
std::span<sluice_interface> slots_of(const Tables& tables) {
    return tables.interfaces.span().first(tables.sizes.interfaces);
}

sluice_interface* find_slot(const Tables& tables, unsigned index) {
    const uint64_t netns = own_netns();
    for (sluice_interface& entry : slots_of(tables))
        if (entry.attachment != SLUICE_DETACHED && entry.index == index && entry.netns == netns)
            return &entry;
    return nullptr;
}

uint32_t slot_of(const Tables& tables, const sluice_interface& entry) {
    return static_cast<uint32_t>(&entry - &tables.interfaces[0]);
}

// A packet that climbs from one device to the other would be charged on both.
Status refuse_double_charge(const Tables& tables, const Interface& wanted) {
    const auto all = list_interfaces();
    if (!all)
        return all.error();
    for (const Interface& other : *all) {
        if (other.index == wanted.index || find_slot(tables, other.index) == nullptr)
            continue;
        const auto above = [](const Interface& lower, const Interface& upper) {
            return std::ranges::find(lower.uppers, upper.index) != lower.uppers.end();
        };
        if (above(wanted, other) || above(other, wanted))
            return failed(wanted.name + " and " + other.name +
                              " see the same packets: each would be charged twice",
                          "detach " + other.name + " first, or attach to " + other.name + " only");
    }
    return {};
}

std::string mode_text(XdpMode mode) {
    return mode == XdpMode::native ? "native" : "generic";
}

std::string how_to_remove(const XdpState& state, const Interface& interface) {
    const std::string removal = command_to_remove(state, interface);
    if (!link_holding(state.any_id(), interface.index))
        return "remove it: " + removal;
    if (!program_name(state.any_id()).starts_with("\"sluice\""))
        return "a link holds it; remove it: " + removal;
    return "it is another gate: sluicectl --pin-dir ITS-DIRECTORY detach " + interface.name +
           "; where that is gone: " + removal;
}

// Another program can only stay where both this kernel and its own loader take several, and the
// gate then runs in the mode of the dispatcher that is there.
Status refuse_foreign_program(const XdpState& state, const Interface& interface, XdpMode mode,
                              bool dispatcher) {
    if (state.any_id() == 0)
        return {};
    const std::string program = program_name(state.any_id());
    const std::string removal = how_to_remove(state, interface);
    const std::string runs = interface.name + " runs the XDP program " + program;
    if (!dispatcher)
        return failed(runs + " and this kernel takes only one", removal);
    if (!has_dispatcher(interface.index))
        return failed(runs + ", which takes no other beside it",
                      removal + ", or load it by xdp-loader, whose programs can share");
    const XdpMode there = state.native_id != 0 ? XdpMode::native : XdpMode::generic;
    if (mode == XdpMode::automatic || mode == there)
        return {};
    return failed(interface.name + " runs other XDP programs in " + mode_text(there) +
                      " mode, and all of one interface share the mode",
                  "attach in " + mode_text(there) + " mode, or remove them: xdp-loader unload " +
                      interface.name + " --all");
}

struct Placement {
    bool native = false;
    bool dispatcher = false;
    uint32_t program_id = 0;
};

Result<Placement> place_alone(const Tables& tables, const KernelFeatures& kernel,
                              const ProgramOptions& options, unsigned index, bool native) {
    auto program = Program::load(tables, kernel, options);
    if (!program)
        return program.error();
    const Status linked =
        link_attach(*program, index, native, link_path(tables, options.interface_slot));
    if (!linked)
        return linked.error();
    return Placement{.native = native, .program_id = program->id()};
}

// Nothing where the dispatcher does not work.
Result<std::optional<Placement>> place_under_dispatcher(const Tables& tables,
                                                        const KernelFeatures& kernel,
                                                        ProgramOptions options, unsigned index,
                                                        bool native) {
    options.chained = true;
    auto program = Program::open(tables, kernel, options);
    if (!program)
        return program.error();
    const auto id = dispatcher_attach(*program, index, native, priority_of(options.generation));
    if (!id)
        return id.error();
    if (!*id)
        return std::optional<Placement>();
    return std::optional(Placement{.native = native, .dispatcher = true, .program_id = **id});
}

// Beside others where that is possible, else alone.
Result<Placement> place(const Tables& tables, const KernelFeatures& kernel,
                        const ProgramOptions& options, unsigned index, bool native) {
    if (kernel.dispatcher) {
        const auto placed = place_under_dispatcher(tables, kernel, options, index, native);
        if (!placed)
            return placed.error();
        if (*placed)
            return **placed;
    }
    return place_alone(tables, kernel, options, index, native);
}

// Native first; generic only where the operator left the choice, and then with what to change.
Result<Placement> place_in_mode(const Tables& tables, const KernelFeatures& kernel,
                                const ProgramOptions& options, const Interface& interface,
                                XdpMode mode, std::vector<std::string>& warnings) {
    if (mode == XdpMode::generic)
        return place(tables, kernel, options, interface.index, false);
    auto native = place(tables, kernel, options, interface.index, true);
    if (native)
        return native;
    const std::string advice = native_mode_advice(interface, kernel.multi_buffer);
    if (mode == XdpMode::native || native.error().code == ErrorCode::not_permitted) {
        Error error = native.error().with_context(interface.name);
        if (error.hint.empty())
            error.hint = advice;
        return error;
    }
    warnings.push_back("generic mode: " + interface.name + " has no native XDP (" +
                       native.error().message + "), packets cost several times more. " + advice);
    return place(tables, kernel, options, interface.index, false);
}

uint64_t attached_word(const Tables& tables, const AttachRequest& request) {
    if (!request.confirm)
        return sluice_switch_make(1, 1, 1, SLUICE_ORIGIN_OPERATOR, 0, 0);
    const uint64_t end = gate_now_ns(tables) + static_cast<uint64_t>(request.confirm->count());
    return sluice_switch_make(1, 0, 1, SLUICE_ORIGIN_OPERATOR, 1, sluice_deadline_from_ns(end));
}

// Generation and handover in one store.
void set_duty(Tables& tables, uint32_t slot, uint32_t generation, sluice_handover handover) {
    __atomic_store_n(&tables.settings().duty[slot], generation | uint64_t{handover} << 32,
                     __ATOMIC_RELEASE);
}

Result<Placement> attach_first(Tables& tables, const KernelFeatures& kernel,
                               const Interface& interface, const AttachRequest& request,
                               sluice_interface& entry, std::vector<std::string>& warnings) {
    const auto state = xdp_state(interface.index);
    if (!state)
        return state.error();
    XdpMode mode = request.mode;
    if (const Status clear = refuse_foreign_program(*state, interface, mode, kernel.dispatcher);
        !clear)
        return clear.error();
    if (state->any_id() != 0)
        mode = state->native_id != 0 ? XdpMode::native : XdpMode::generic;

    const uint32_t slot = slot_of(tables, entry);
    __atomic_store_n(&tables.settings().attached[slot], attached_word(tables, request),
                     __ATOMIC_RELEASE);
    set_duty(tables, slot, entry.generation, SLUICE_HANDOVER_NONE);
    const ProgramOptions options{.interface_slot = slot,
                                 .generation = entry.generation,
                                 .largest_frame = interface.mtu + kFrameOverhead};
    return place_in_mode(tables, kernel, options, interface, mode, warnings);
}

// Both generations stand in the chain; the duty goes over by one store, and only the second of the
// two asks whether the first has had the packet.
Result<Placement> replace_in_dispatcher(Tables& tables, const KernelFeatures& kernel,
                                        const Interface& interface, sluice_interface& entry) {
    const uint32_t slot = slot_of(tables, entry), old_generation = entry.generation;
    const ProgramOptions options{.interface_slot = slot,
                                 .generation = old_generation + 1,
                                 .largest_frame = interface.mtu + kFrameOverhead};
    const auto placed =
        place_under_dispatcher(tables, kernel, options, interface.index, entry.native != 0);
    if (!placed)
        return placed.error();
    if (!*placed)
        return failed("libxdp's dispatcher does not work here any more");
    // Until here packets may still be in the dispatcher before, which has the old one only.
    if (const Status passed = wait_for_packets_in_flight(); !passed) {
        (void)dispatcher_detach((*placed)->program_id, interface.index);
        return passed.error();
    }
    const bool new_is_second = priority_of(options.generation) > priority_of(old_generation);
    set_duty(tables, slot, options.generation,
             new_is_second ? SLUICE_HANDOVER_NEW_IS_SECOND : SLUICE_HANDOVER_OLD_IS_SECOND);
    if (const Status passed = wait_for_packets_in_flight(); !passed)
        return passed.error();
    set_duty(tables, slot, options.generation, SLUICE_HANDOVER_NONE);
    entry.generation = options.generation;
    const uint32_t old_program = std::exchange(entry.program_id, (*placed)->program_id);
    if (const Status gone = dispatcher_detach(old_program, interface.index); !gone)
        return gone.error();
    return **placed;
}

Result<Placement> replace_link(const Tables& tables, const KernelFeatures& kernel,
                               const Interface& interface, const sluice_interface& entry) {
    const uint32_t slot = slot_of(tables, entry);
    auto program = Program::load(tables, kernel,
                                 {.interface_slot = slot,
                                  .generation = entry.generation,
                                  .largest_frame = interface.mtu + kFrameOverhead});
    if (!program)
        return program.error();
    if (const Status replaced = link_replace(*program, link_path(tables, slot)); !replaced)
        return replaced.error();
    return Placement{.native = entry.native != 0, .program_id = program->id()};
}

void write_name(const std::string& name, sluice_interface& entry) {
    std::memset(entry.name, 0, sizeof(entry.name));
    name.copy(entry.name, sizeof(entry.name) - 1);
}

// The names of slots are for those who read the tables by hand, and for interfaces that are gone.
void follow_renames(Tables& tables) {
    for (sluice_interface& entry : slots_of(tables))
        if (entry.attachment != SLUICE_DETACHED)
            write_name(present_name(entry), entry);
}

void record(const Interface& interface, const Placement& placed, sluice_interface& entry) {
    write_name(interface.name, entry);
    entry.index = interface.index;
    entry.netns = own_netns();
    entry.native = placed.native;
    entry.program_id = placed.program_id;
    entry.largest_frame = interface.mtu + kFrameOverhead;
    entry.attachment = placed.dispatcher ? SLUICE_ATTACHED_DISPATCHER : SLUICE_ATTACHED_LINK;
}

Attachment describe(const Tables& tables, const sluice_interface& entry) {
    const uint32_t slot = slot_of(tables, entry);
    Attachment attachment{.interface = present_name(entry),
                          .index = entry.index,
                          .slot = slot,
                          .native = entry.native != 0,
                          .dispatcher = entry.attachment == SLUICE_ATTACHED_DISPATCHER,
                          .program_id = entry.program_id,
                          .here = entry.netns == own_netns()};
    attachment.expired =
        sluice_switch_value(tables.settings().attached[slot], gate_now_ns(tables)) == 0;
    if (!attachment.here) {
        // An index there says nothing here, but a link knows whether its interface is gone, and of
        // a dispatcher's program the kernel knows whether anybody holds it.
        attachment.lost = attachment.dispatcher ? !is_program_loaded(entry.program_id)
                                                : link_interface(link_path(tables, slot)) == 0;
        if (!attachment.lost)
            attachment.warnings.push_back("in another network namespace, not verified from here");
        return attachment;
    }
    const auto state = xdp_state(entry.index);
    attachment.lost = attachment.dispatcher
                          ? !dispatcher_has(entry.program_id, entry.index)
                          : !state || (entry.native != 0 ? state->native_id : state->generic_id) !=
                                          entry.program_id;
    return attachment;
}

bool is_lost(const Tables& tables, const sluice_interface& entry) {
    return entry.attachment != SLUICE_DETACHED && describe(tables, entry).lost;
}

// What is left of a lost attachment must neither be in the way nor keep its slot.
void forget(const Tables& tables, sluice_interface& entry) {
    if (entry.attachment == SLUICE_ATTACHED_LINK)
        (void)link_detach(link_path(tables, slot_of(tables, entry)));
    entry.attachment = SLUICE_DETACHED;
}

// Somebody took the gate off the interface, or deleted it and made it anew.
void forget_lost(const Tables& tables, const Interface& wanted) {
    for (sluice_interface& entry : slots_of(tables))
        if ((entry.index == wanted.index || present_name(entry) == wanted.name) &&
            is_lost(tables, entry))
            forget(tables, entry);
}

Result<sluice_interface*> free_slot(const Tables& tables, const Interface& wanted,
                                    std::vector<std::string>& warnings) {
    for (sluice_interface& entry : slots_of(tables))
        if (entry.attachment == SLUICE_DETACHED)
            return &entry;
    for (sluice_interface& entry : slots_of(tables)) {
        if (!is_lost(tables, entry))
            continue;
        warnings.push_back(wanted.name + " takes the place of " + present_name(entry) +
                           ", where the gate is not any more");
        forget(tables, entry);
        return &entry;
    }
    return failed("all " + std::to_string(tables.sizes.interfaces) +
                      " interfaces that this gate was made for are in use",
                  "detach one; or name all in the configuration, and " + std::string(kMakeAnew) +
                      "; " + std::string(kKeepBans));
}

sluice_interface* find_by_name(const Tables& tables, const std::string& name) {
    if (const unsigned index = if_nametoindex(name.c_str()); index != 0)
        if (sluice_interface* entry = find_slot(tables, index))
            return entry;
    for (sluice_interface& entry : slots_of(tables))
        if (entry.attachment != SLUICE_DETACHED && present_name(entry) == name)
            return &entry;
    return nullptr;
}

// A link reaches everywhere; a dispatcher is found by its interface, in the interface's namespace.
Status take_from_dispatcher(const sluice_interface& entry) {
    if (entry.netns == own_netns())
        return dispatcher_detach(entry.program_id, entry.index);
    if (!is_program_loaded(entry.program_id))
        return {};
    return failed(present_name(entry) +
                      " is in another network namespace, under a dispatcher that cannot be "
                      "reached from here",
                  "detach it there: nsenter --net=/run/netns/NAME sluicectl detach " +
                      present_name(entry) +
                      "; where that namespace is gone, first: xdp-loader clean");
}

}  // namespace

std::string present_name(const sluice_interface& entry) {
    std::string name;
    if (entry.netns == own_netns())
        name = interface_name(entry.index);
    return name.empty() ? std::string(entry.name, ::strnlen(entry.name, sizeof(entry.name))) : name;
}

std::string why_idle(const Attachment& attachment) {
    if (attachment.lost)
        return attachment.interface +
               ": the gate is not there any more; attach it again: sluicectl attach " +
               attachment.interface;
    if (attachment.expired)
        return attachment.interface +
               ": not confirmed in time, everything passes; sluicectl attach " +
               attachment.interface + " puts it back";
    return {};
}

Result<Attachment> attach(Tables& tables, const AttachRequest& request) {
    const auto kernel = probe_kernel();
    if (!kernel)
        return kernel.error();
    const auto interface = find_interface(request.interface);
    if (!interface)
        return interface.error();
    if (!interface->up)
        return failed(interface->name + " is down", "ip link set " + interface->name + " up");
    if (const Status single = refuse_double_charge(tables, *interface); !single)
        return single.error();

    std::vector<std::string> warnings;
    forget_lost(tables, *interface);
    follow_renames(tables);
    sluice_interface* entry = find_slot(tables, interface->index);
    Result<Placement> placed = failed("nothing attached");
    if (entry == nullptr) {
        auto slot = free_slot(tables, *interface, warnings);
        if (!slot)
            return slot.error();
        entry = *slot;
        placed = attach_first(tables, *kernel, *interface, request, *entry, warnings);
    } else if (request.mode != XdpMode::automatic &&
               (request.mode == XdpMode::native) != (entry->native != 0)) {
        return failed(interface->name + " is attached in the other XDP mode",
                      "sluicectl detach " + interface->name + ", then attach again");
    } else {
        placed = entry->attachment == SLUICE_ATTACHED_DISPATCHER
                     ? replace_in_dispatcher(tables, *kernel, *interface, *entry)
                     : replace_link(tables, *kernel, *interface, *entry);
    }
    if (!placed)
        return placed.error();
    record(*interface, *placed, *entry);

    Attachment attachment = describe(tables, *entry);
    attachment.warnings.insert(attachment.warnings.end(), warnings.begin(), warnings.end());
    return attachment;
}

Result<Attachment> take_over(Tables& tables, const std::string& link_pin) {
    const auto kernel = probe_kernel();
    if (!kernel)
        return kernel.error();
    const unsigned index = link_interface(link_pin);
    const auto state = xdp_state(index);
    // The index may be one of another namespace.
    if (!state || state->any_id() == 0 || state->any_id() != link_program(link_pin))
        return failed(link_pin + " holds a gate in another network namespace",
                      "start sluiced there");
    const auto interface = find_interface(interface_name(index));
    if (!interface)
        return interface.error();
    std::vector<std::string> warnings;
    sluice_interface* entry = find_slot(tables, index);
    if (entry == nullptr) {
        auto slot = free_slot(tables, *interface, warnings);
        if (!slot)
            return slot.error();
        entry = *slot;
    }
    const uint32_t slot = slot_of(tables, *entry);
    auto program = Program::load(tables, *kernel,
                                 {.interface_slot = slot,
                                  .generation = entry->generation,
                                  .largest_frame = interface->mtu + kFrameOverhead});
    if (!program)
        return program.error();
    __atomic_store_n(&tables.settings().attached[slot],
                     attached_word(tables, {.interface = interface->name, .confirm = {}}),
                     __ATOMIC_RELEASE);
    if (const Status replaced = link_replace(*program, link_pin); !replaced)
        return replaced.error();
    // First in the table: cut off in between, the pin is still found where it was.
    record(*interface, {.native = state->native_id != 0, .program_id = program->id()}, *entry);
    if (::rename(link_pin.c_str(), link_path(tables, slot).c_str()) != 0)
        return from_errno(errno, "move " + link_pin);
    return describe(tables, *entry);
}

Status detach(Tables& tables, std::string_view name) {
    follow_renames(tables);
    sluice_interface* entry = find_by_name(tables, std::string(name));
    if (entry == nullptr)
        return make_error(
            ErrorCode::not_found,
            "the gate in " + tables.pin_dir + " is not attached to " + std::string(name),
            "sluicectl status lists where it is");
    const Status gone = entry->attachment == SLUICE_ATTACHED_DISPATCHER
                            ? take_from_dispatcher(*entry)
                            : link_detach(link_path(tables, slot_of(tables, *entry)));
    if (gone)
        entry->attachment = SLUICE_DETACHED;
    return gone;
}

Result<std::vector<Attachment>> attachments(const Tables& tables) {
    std::vector<Attachment> all;
    for (const sluice_interface& entry : slots_of(tables))
        if (entry.attachment != SLUICE_DETACHED)
            all.push_back(describe(tables, entry));
    return all;
}

bool attached_here(const Tables& tables) {
    const uint64_t netns = own_netns();
    bool here = false;
    for (const sluice_interface& entry : slots_of(tables)) {
        if (entry.attachment == SLUICE_DETACHED)
            continue;
        if (entry.netns != netns)
            return false;
        here = true;
    }
    return here;
}

}  // namespace sluice
