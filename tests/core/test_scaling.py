"""Names of Demand objects: valid for the API server, and different for different demands."""

from __future__ import annotations

import re

import pytest

from gangsched.core.autoscaling.scaling import demand_name

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@pytest.mark.parametrize(
    ("owner", "group", "name"),
    [
        ("pi-driver", "", "demand-pi-driver"),
        ("pi.driver", "batch", "demand-pi.driver-batch"),
        ("d", "high-mem-2", "demand-d-high-mem-2"),
    ],
)
def test_a_name_says_pod_and_instance_group(owner, group, name):
    assert demand_name(owner, group) == name


@pytest.mark.parametrize("owner", ["d", "a" * 253, "a" * 244 + ".b" * 4])
@pytest.mark.parametrize("group", ["", "Batch", "b_c", "b._c", "-", "ö/ü", "x" * 300, "9"])
def test_every_name_is_valid(owner, group):
    name = demand_name(owner, group)
    assert SUBDOMAIN.fullmatch(name)
    assert len(name) <= 253


def test_what_would_be_written_alike_is_told_apart():
    groups = ["batch", "Batch", "BATCH", "b.c", "b_c", "b-c", "-", "--"]
    owners = ["a" * 252 + "x", "a" * 252 + "y"]
    names = [demand_name(owner, group) for owner in ("d", *owners) for group in groups]
    assert len(set(names)) == len(names)
