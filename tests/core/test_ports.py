from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.constraints.node_ports import PortsInUse
from gangsched.core.objects.shape import HostPort
from tests.strategies import port_sets

LOCAL = HostPort(80, ip="127.0.0.1")
OTHER = HostPort(80, ip="10.0.0.1")


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
