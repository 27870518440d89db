// The two ways onto an interface: alone by a pinned bpf_link, or under libxdp's dispatcher.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "gate/program.h"
#include "net/interface.h"

namespace sluice {

// What XDP runs on an interface now; ids are 0 where there is none.
struct XdpState {
    uint32_t native_id = 0;
    uint32_t generic_id = 0;

    [[nodiscard]] uint32_t any_id() const { return native_id != 0 ? native_id : generic_id; }
};
Result<XdpState> xdp_state(unsigned interface_index);

// The kernel's name of a program, or its number where that cannot be read.
std::string program_name(uint32_t program_id);
// Whether anybody holds it: an interface, a pin, a descriptor.
bool is_program_loaded(uint32_t program_id);

// A single program by bpf_link: other tools cannot remove it, and replacing it is atomic.
Status link_attach(const Program& program, unsigned interface_index, bool native,
                   const std::string& pin_path);
Status link_replace(const Program& program, const std::string& pin_path);
Status link_detach(const std::string& pin_path);
// The index, in its own namespace, of the interface that a pinned link is on; 0 where the
// interface or the pin is gone.
unsigned link_interface(const std::string& pin_path);
// The program of a pinned link; 0 where the pin is gone.
uint32_t link_program(const std::string& pin_path);
// The id of the link that holds a program on an interface; nothing where no link does.
std::optional<uint32_t> link_holding(uint32_t program_id, unsigned interface_index);

// What takes the program off that is there. `ip link` cannot where a link holds it, and does
// nothing where the mode is another.
std::string command_to_remove(const XdpState& state, const Interface& interface);

// Under the dispatcher. `program` is open, not loaded; `priority` orders it among others. Nothing,
// with nothing attached, where the dispatcher turns out not to work; `program` is of no use then.
Result<std::optional<uint32_t>> dispatcher_attach(const Program& program, unsigned interface_index,
                                                  bool native, unsigned priority);
Status dispatcher_detach(uint32_t program_id, unsigned interface_index);
// Whether what runs there is a dispatcher, so that another program can join.
bool has_dispatcher(unsigned interface_index);
// Whether `program_id` is one of the dispatcher's programs there.
bool dispatcher_has(uint32_t program_id, unsigned interface_index);

}  // namespace sluice
