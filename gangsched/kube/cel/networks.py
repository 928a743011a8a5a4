"""Kubernetes' functions for IP addresses and networks in the Common Expression Language.

Source: k8s.io/apiserver/pkg/cel/library (ip.go, cidr.go) at v1.37.2. Values are maps with one key, like those of
quantities and versions.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_address, ip_interface

from cel_expr_python import cel

from gangsched.kube.cel.overloads import BOOL, INT, TEXT, VALUE, Overload, Value, is_read_by

Address = IPv4Address | IPv6Address
Interface = IPv4Interface | IPv6Interface


def _address(value: str | Value) -> Address:
    address = ip_address(value if isinstance(value, str) else value["ip"])
    if isinstance(address, IPv6Address) and (address.scope_id is not None or address.ipv4_mapped is not None):
        raise ValueError(f"{value!r} has a zone, or stands for an IPv4 address")
    return address


def _network(value: str | Value) -> Interface:
    text: str = value if isinstance(value, str) else value["cidr"]
    address, _, length = text.partition("/")
    if not (length.isdecimal() and length.isascii()) or (length[0] == "0" and length != "0"):
        raise ValueError(f"{text!r} has no length of a prefix")
    _address(address)
    return ip_interface(text)


def _ip(value: str | Value) -> Value:
    """The address in the text, or the address of a network."""
    if isinstance(value, dict) and "cidr" in value:
        return {"ip": str(_network(value).ip)}
    return {"ip": str(_address(value))}


def _contains(network: Value, value: str | Value) -> bool:
    address, within = _address(value), _network(network).network
    return address.version == within.version and address in within


def _contains_network(network: Value, value: str | Value) -> bool:
    inner, outer = _network(value), _network(network).network
    return inner.version == outer.version and inner.network.prefixlen >= outer.prefixlen and inner.ip in outer


def _global(value: Value) -> bool:
    address = _address(value)
    broadcast = str(address) == "255.255.255.255"
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not (special or broadcast)


def _link_local_multicast(value: Value) -> bool:
    address = _address(value)
    if isinstance(address, IPv4Address):
        return address.packed[:3] == b"\xe0\x00\x00"
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02  # noqa: PLR2004 - ff02::/16, any flags


def _tells(impl: Callable[[Value], object], result: cel.Type) -> tuple[Overload, ...]:
    return (Overload(result, (VALUE,), impl, member=True),)


def _either(impl: Callable[[Value, str | Value], bool]) -> tuple[Overload, ...]:
    return tuple(Overload(BOOL, (VALUE, other), impl, member=True) for other in (VALUE, TEXT))


NETWORK_FUNCTIONS: dict[str, tuple[Overload, ...]] = {
    "ip": (Overload(VALUE, (TEXT,), _ip), Overload(VALUE, (VALUE,), _ip, member=True)),
    "isIP": (Overload(BOOL, (TEXT,), is_read_by(_address)),),
    "ip.isCanonical": (Overload(BOOL, (TEXT,), lambda text: str(_address(text)) == text),),
    "family": _tells(lambda value: _address(value).version, INT),
    "isUnspecified": _tells(lambda value: _address(value).is_unspecified, BOOL),
    "isLoopback": _tells(lambda value: _address(value).is_loopback, BOOL),
    "isLinkLocalMulticast": _tells(_link_local_multicast, BOOL),
    "isLinkLocalUnicast": _tells(lambda value: _address(value).is_link_local, BOOL),
    "isGlobalUnicast": _tells(_global, BOOL),
    "cidr": (Overload(VALUE, (TEXT,), lambda text: {"cidr": str(_network(text))}),),
    "isCIDR": (Overload(BOOL, (TEXT,), is_read_by(_network)),),
    "containsIP": _either(_contains),
    "containsCIDR": _either(_contains_network),
    "masked": _tells(lambda value: {"cidr": str(_network(value).network)}, VALUE),
    "prefixLength": _tells(lambda value: _network(value).network.prefixlen, INT),
}
"""The functions by name, each with its overloads."""
