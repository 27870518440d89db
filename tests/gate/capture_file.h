// Frames of a capture file, as Ethernet carries them. Apart from the gate's headers, because those
// of libpcap define their own `struct bpf_insn`.
#pragma once

#include <string>
#include <vector>

#include "packet.h"

namespace sluice {

struct CaptureFile {
    std::vector<Bytes> frames;
    std::string unreadable;  // why there are none
};

// Raw IP gets an Ethernet header; other link types are unreadable.
CaptureFile read_capture_file(const std::string& path);

}  // namespace sluice
