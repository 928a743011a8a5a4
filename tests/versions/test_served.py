"""What the table of versions says of Kubernetes' own groups is what the API server serves with everything turned on."""

from __future__ import annotations

from testbed import binaries
from testbed.control_plane import ControlPlane
from tests.natives import GROUP, NATIVE


def test_podgroups_are_served_in_the_versions_that_are_known() -> None:
    everything = ("--feature-gates=AllAlpha=true,AllBeta=true", "--runtime-config=api/all=true")
    with ControlPlane(controllers=False, kwok=False, extra_apiserver_args=everything) as running:
        versions = [each["groupVersion"] for each in running.api.get(f"/apis/{GROUP}")["versions"]]
        served = {
            version.partition("/")[2]
            for version in versions
            if "podgroups" in {each["name"] for each in running.api.get(f"/apis/{version}")["resources"]}
        }

    known = NATIVE.get(binaries.version_of("kube-apiserver"))
    assert served == (set() if known is None else set(known.versions))
