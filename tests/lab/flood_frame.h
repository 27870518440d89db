// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What the flood's program and its loader agree on.
#pragma once

// Ethernet, up to 9 VLAN tags, IPv6, TCP: 110 bytes, in words of 8.
#define FLOOD_MAX_VLAN_TAGS 9
#define FLOOD_HEADER_WORDS 14
// Bytes behind the start of L4 that every frame has: a TCP header, padding behind a UDP header.
#define FLOOD_L4_BYTES 20
