"""
The links between the places of a small Internet: packets that leave one network namespace reach the namespace that has
their destination after the one-way delay between the two.

Standard input has one JSON object a line; a line's keys replace those of earlier lines:
  namespaces  {place: name of its network namespace}
  places      {address: place}; packets to any other address are dropped, as by a router without a route
  oneWayMs    {"place place", sorted: delay between the two}; within a place a packet takes half a millisecond
  siteOneWayMs {address: {place: delay between the two}}, in place of oneWayMs
  queueMs     what queues add to each packet: the mean of an exponential; two addresses' packets stay in order
The router ends with its standard input.
"""

import ctypes
import fcntl
import heapq
import ipaddress
import json
import os
import random
import select
import struct
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
LOCAL_SECONDS = 0.0005
LARGEST_PACKET_BYTES = 65535
libc = ctypes.CDLL(None, use_errno=True)


def enter(namespace):
    if libc.setns(namespace, 0) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def open_tunnel(namespace, own):
    """A device belongs to the namespace in which it is opened, wherever its packets are read."""
    there = os.open("/run/netns/" + namespace, os.O_RDONLY)
    enter(there)
    tunnel = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tunnel, TUNSETIFF, struct.pack("16sH", b"tun0", IFF_TUN | IFF_NO_PI))
    enter(own)
    os.close(there)
    return tunnel


def destination(packet):
    return packet[16:20] if packet[0] >> 4 == 4 else packet[24:40]


def source(packet):
    return packet[12:16] if packet[0] >> 4 == 4 else packet[8:24]


def main():
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    tunnels, place_of_tunnel, place_of_address, delays = {}, {}, {}, {}
    site_delays, queue_seconds, latest = {}, 0, {}
    waiting, count, text = [], 0, b""
    while True:
        seconds = max(0, waiting[0][0] - time.monotonic()) if waiting else None
        for ready in select.select([0, *place_of_tunnel], [], [], seconds)[0]:
            if ready == 0:
                piece = os.read(0, 1 << 16)
                if not piece:
                    return
                *lines, text = (text + piece).split(b"\n")
                for line in lines:
                    told = json.loads(line)
                    for place, namespace in told.get("namespaces", {}).items():
                        tunnels[place] = open_tunnel(namespace, own)
                        place_of_tunnel[tunnels[place]] = place
                    for address, place in told.get("places", {}).items():
                        place_of_address[ipaddress.ip_address(address).packed] = place
                    for pair, milliseconds in told.get("oneWayMs", {}).items():
                        delays[pair] = milliseconds / 1000
                    for address, of_places in told.get("siteOneWayMs", {}).items():
                        site = ipaddress.ip_address(address).packed
                        site_delays[site] = {place: ms / 1000 for place, ms in of_places.items()}
                    queue_seconds = told.get("queueMs", queue_seconds * 1000) / 1000
                    print("heard", flush=True)
                continue
            sender = place_of_tunnel[ready]
            for _ in range(64):
                try:
                    packet = os.read(ready, LARGEST_PACKET_BYTES)
                except BlockingIOError:
                    break
                receiver = place_of_address.get(destination(packet))
                if receiver is None:
                    continue
                of_site = site_delays.get(destination(packet), {}).get(sender)
                if of_site is None:
                    of_site = site_delays.get(source(packet), {}).get(receiver)
                if of_site is not None:
                    delay = of_site
                else:
                    delay = LOCAL_SECONDS if receiver == sender else delays[" ".join(sorted((sender, receiver)))]
                due = time.monotonic() + delay
                if queue_seconds > 0:
                    path = source(packet) + destination(packet)
                    due = max(due + random.expovariate(1 / queue_seconds), latest.get(path, 0))
                    latest[path] = due
                # The count keeps packets of the same moment in their order.
                count += 1
                heapq.heappush(waiting, (due, count, tunnels[receiver], packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, tunnel, packet = heapq.heappop(waiting)
            try:
                os.write(tunnel, packet)
            except OSError:
                # The device's queue is full, or its namespace is going: a packet that is lost, as on any network.
                pass


sys.exit(main())
