"""KWOK's stages for pods that become ready late."""

from __future__ import annotations

import yaml

from testbed import stages
from testbed.stages import ends
from testbed.workloads import member

READY = """
metadata: {name: pod-ready}
spec:
  selector:
    matchExpressions:
      - {key: .status.phase, operator: In, values: [Pending]}
      - {key: '.status.conditions.[] | select( .type == "Ready" ) | .status', operator: NotIn, values: ['True']}
  next:
    statusTemplate: |
      conditions:
      - lastTransitionTime: now
        status: "True"
        type: Initialized
      - lastTransitionTime: now
        status: "True"
        type: Ready
      containerStatuses:
      - ready: true
      {{ $hostIPs := NodeIPsWith .spec.nodeName }}
      podIP: any
      phase: Running
"""


def test_a_pod_runs_at_once_and_is_ready_later_without_other_addresses():
    other = "metadata: {name: pod-delete}\n"
    found = {stage["metadata"]["name"]: stage for stage in yaml.safe_load_all(stages.late(f"{READY}---\n{other}", 20))}
    assert set(found) == {"pod-delete", "pod-running", "pod-ready", "pod-complete"}
    running, ready = (found[name]["spec"] for name in ("pod-running", "pod-ready"))
    assert yaml.safe_load(running["next"]["statusTemplate"].replace("{{", "# {{")) == {
        "conditions": [
            {"lastTransitionTime": "now", "status": "True", "type": "Initialized"},
            {"lastTransitionTime": "now", "status": "False", "type": "Ready"},
        ],
        "containerStatuses": [{"ready": False}],
        "podIP": "any",
        "phase": "Running",
    }
    assert running["selector"]["matchExpressions"][0]["values"] == ["Pending"]
    assert "delay" not in running
    told = yaml.safe_load(ready["next"]["statusTemplate"])
    assert told["phase"] == "Running"
    assert told["conditions"][1]["status"] == "True"
    assert "podIP" not in told
    assert ready["selector"]["matchExpressions"][0]["values"] == ["Running"]
    assert ready["delay"] == {"durationMilliseconds": 20000}


def test_only_a_pod_that_loads_data_ends_by_itself():
    pod = member("one")
    assert not ends(pod)
    pod["spec"]["containers"][0]["name"] = "dataset-initializer"
    assert ends(pod)
