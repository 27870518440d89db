#include "capture_file.h"

#include <pcap/pcap.h>

#include <memory>
#include <optional>

namespace sluice {

namespace {

struct Closer {
    void operator()(pcap_t* file) const noexcept { pcap_close(file); }
};

std::optional<Bytes> as_ethernet(int link_type, const Bytes& frame) {
    const auto wrap = [&frame](uint16_t type) {
        return Packet(Ethernet().type(type)).bytes() + frame;
    };
    switch (link_type) {
        case DLT_EN10MB:
            return frame;
        case DLT_IPV4:
            return wrap(0x0800);
        case DLT_IPV6:
            return wrap(0x86dd);
        case DLT_RAW:
            return wrap(!frame.empty() && frame[0] >> 4 == 6 ? 0x86dd : 0x0800);
        default:
            return {};
    }
}

}  // namespace

CaptureFile read_capture_file(const std::string& path) {
    char error[PCAP_ERRBUF_SIZE] = {};
    const std::unique_ptr<pcap_t, Closer> file(pcap_open_offline(path.c_str(), error));
    if (file == nullptr)
        return {{}, error};
    const int link_type = pcap_datalink(file.get());
    CaptureFile capture;
    pcap_pkthdr* header = nullptr;
    const u_char* data = nullptr;
    while (pcap_next_ex(file.get(), &header, &data) == 1) {
        auto frame = as_ethernet(link_type, Bytes(data, data + header->caplen));
        if (!frame) {
            const char* name = pcap_datalink_val_to_name(link_type);
            return {{}, "link type " + (name != nullptr ? name : std::to_string(link_type))};
        }
        capture.frames.push_back(std::move(*frame));
    }
    return capture;
}

}  // namespace sluice
