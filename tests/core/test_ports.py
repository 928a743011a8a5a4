from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.constraints.node_ports import PortsInUse
from gangsched.core.objects.shape import HostPort
from tests.strategies import port_sets

ANY = HostPort(80)
LOCAL = HostPort(80, ip="127.0.0.1")
OTHER = HostPort(80, ip="10.0.0.1")


@pytest.mark.parametrize(
    ("taken", "wanted", "conflict"),
    [
        pytest.param([], [ANY], False, id="nothing taken"),
        pytest.param([ANY], [], False, id="nothing wanted"),
        pytest.param([ANY], [ANY], True, id="same port everywhere"),
        pytest.param([ANY], [HostPort(81)], False, id="another port"),
        pytest.param([ANY], [HostPort(80, protocol="UDP")], False, id="another protocol"),
        pytest.param([LOCAL], [LOCAL], True, id="same specific IP"),
        pytest.param([LOCAL], [OTHER], False, id="two specific IPs stand side by side"),
        pytest.param([LOCAL], [ANY], True, id="the wildcard wants every IP"),
        pytest.param([ANY], [LOCAL], True, id="the wildcard has every IP"),
        pytest.param([HostPort(80, ip="::")], [LOCAL], False, id="the IPv6 wildcard is an IP like others"),
        pytest.param([HostPort(80, ip="::")], [HostPort(80, ip="::")], True, id="and equal to itself"),
        pytest.param([HostPort(80, ip="::")], [ANY], True, id="and one of every IP"),
        pytest.param([LOCAL], [HostPort(81), OTHER, LOCAL], True, id="any of several"),
        pytest.param([LOCAL, OTHER, HostPort(81)], [HostPort(82), HostPort(81)], True, id="with any of several"),
    ],
)
def test_ports_conflict_as_kubernetes_says(taken, wanted, conflict):
    used = PortsInUse()
    used.add(taken)
    assert used.conflicts(wanted) is conflict


def test_removing_what_was_never_added_is_an_error():
    used = PortsInUse()
    used.add((LOCAL,))
    with pytest.raises(KeyError):
        used.remove((OTHER,))


@given(st.lists(port_sets), port_sets)
def test_remove_undoes_add_exactly(before, more):
    used, expected = PortsInUse(), PortsInUse()
    for ports in before:
        used.add(ports)
        expected.add(ports)
    used.add(more)
    assert (used == expected) is (more == ())
    used.remove(more)
    assert used == expected
    assert bool(used) is any(before)
    for ports in before:
        used.remove(ports)
    assert used == PortsInUse()
