"""Which of the hosts that Metadata names are connected to.

Rules of this file

1. Metadata is the broker's text: it may name a machine that only the prober can reach. So only the host that the user named
   is connected to, unless the user allows others.
2. Then too, no link-local address and no other at which a cloud serves the credentials of its machines (METADATA_SERVICES),
   and a loopback address only if the named host has one: behind it are the prober's own services.
3. An IPv4 address counts in whatever IPv6 address it is written: a translator or a tunnel would lead there.
"""

import socket
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from tidegauge.drive.probe.connection import Dial, Wire
from tidegauge.drive.probe.security import SecureDial
from tidegauge.traces.problems import shown

METADATA_SERVICES = {
    ip_address("fd00:ec2::254"): "AWS",
    ip_address("fd20:ce::254"): "Google Cloud",
    ip_address("168.63.129.16"): "Azure",
    ip_address("100.100.100.200"): "Alibaba Cloud",
    ip_address("192.0.0.192"): "Oracle Cloud",
}
"""Those that are not link-local, by address."""

EMBEDDINGS = (
    (IPv6Network("::/96"), (96,)),  # IPv4-compatible (RFC 4291, 2.5.5.1)
    (IPv6Network("::ffff:0:0/96"), (96,)),  # IPv4-mapped (RFC 4291, 2.5.5.2)
    (IPv6Network("::ffff:0:0:0/96"), (96,)),  # IPv4-translated (RFC 2765)
    (IPv6Network("64:ff9b::/96"), (96,)),  # NAT64 (RFC 6052)
    (IPv6Network("64:ff9b:1::/48"), (48, 56, 64, 96)),  # NAT64 of a site (RFC 8215), with a prefix of one of these lengths
    (IPv6Network("2002::/16"), (16,)),  # 6to4 (RFC 3056)
    (IPv6Network("2001::/32"), (32,)),  # Teredo (RFC 4380): the server; the client's is inverted
)
"""Networks of IPv6 whose addresses have an IPv4 address in them, and the bits before it."""
RESERVED_FROM = 64
"""The eight bits from here on are never part of an IPv4 address, which goes on behind them (RFC 6052, 2.2)."""
ISATAP = (0x00005EFE, 0x02005EFE)
"""The bits before an IPv4 address at the end, in any network (RFC 5214)."""


def staying_with(host: str, dial: SecureDial, *, follow_metadata: bool) -> Dial:
    """Return a dial that goes to the host that the user named, or also to others that Metadata may name."""

    def dial_if_allowed(named: str, port: int) -> Wire:
        if not follow_metadata and named.lower() != host.lower():
            raise OSError(0, f"Metadata names the host {shown(named)}, not {host}; --follow-metadata goes there")
        if named.lower() == host.lower():
            return dial(named, port, named)
        addresses = _addresses(named, port)
        loopback_too = any(map(_is_loopback, addresses)) and any(map(_is_loopback, _addresses(host, port)))
        for address in addresses:
            if why := _refused(address) or ("a loopback address" if _is_loopback(address) and not loopback_too else ""):
                raise OSError(0, f"Metadata names the host {shown(named)}, {why}, which is not asked")
        # The addresses that were looked at: asked again, the name could lead elsewhere.
        for address in addresses[:-1]:
            with suppress(OSError):
                return dial(address, port, named)
        return dial(addresses[-1], port, named)

    return dial_if_allowed


def _addresses(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))


def _refused(address: str) -> str:
    """Return why nobody connects to an address, if nobody does."""
    for meant in _meant(address):
        if meant.is_link_local:
            return "a link-local address"
        if meant in METADATA_SERVICES:
            return f"the metadata service of {METADATA_SERVICES[meant]}"
    return ""


def _is_loopback(address: str) -> bool:
    # To connect to no address at all is to connect to this machine.
    return address in {"0.0.0.0", "::", "::ffff:0.0.0.0"} or any(meant.is_loopback for meant in _meant(address))


def _meant(address: str) -> Iterator[IPv4Address | IPv6Address]:
    """Yield an address, and those of IPv4 that are in it."""
    read = ip_address(address)
    yield read
    if isinstance(read, IPv4Address):
        return
    number = int(read)
    for network, places in EMBEDDINGS:
        if read in network:
            yield from (IPv4Address(_bits(number, place)) for place in places)
    if (number >> 32) & 0xFFFFFFFF in ISATAP:
        yield IPv4Address(number & 0xFFFFFFFF)
    if read.teredo is not None:
        yield read.teredo[1]


def _bits(number: int, place: int) -> int:
    """Return the 32 bits of an IPv6 address behind the first `place`."""
    if place <= RESERVED_FROM:
        number = number >> 64 << 64 | (number & ((1 << 56) - 1)) << 8
    return (number >> (96 - place)) & 0xFFFFFFFF
