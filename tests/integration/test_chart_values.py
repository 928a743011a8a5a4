"""The real helm rejects the values that the operator or the API server would reject, and accepts all others."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from documentation.generate import ROOT
from gangsched.config.invalid_config import InvalidConfig
from gangsched.config.settings import Settings, load
from testbed import binaries

CHART = ROOT / "charts" / "gangsched"
IMAGE = {"image": {"repository": "registry.invalid/gangsched"}}
THE_CHARTS = {"listen", "log_format", "dialects", "workloads", "page"}
Values = Mapping[str, Any]
Helm = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    """Runs helm on the chart (or on another, if given) with an image and these values, without a cluster."""
    folder = binaries.find(["helm"])
    assert folder is not None

    def run(*arguments: str, values: Values | None = None, chart: Path = CHART) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "values.yaml"
        file.write_text(yaml.safe_dump({**IMAGE, **(values or {})}))
        return subprocess.run(
            [folder / "helm", "template", "gangsched", chart, "-f", file, *arguments],
            env=os.environ | {"HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def paths(told: str) -> set[str]:
    """The place that a message is about: helm tells one thing about a place at a time."""
    return {told.split("'")[1]}


def together(cases: Iterable[tuple[Values, str]]) -> list[tuple[Values, list[str]]]:
    """The cases in as few runs of helm as possible: in each, no two set the same value or are told of one place."""
    runs: list[tuple[dict[str, Any], list[str]]] = []
    for values, told in cases:
        places = {*values, *paths(told)}
        for merged, texts in runs:
            if not places & {*merged, *(path for text in texts for path in paths(text))}:
                merged.update(values)
                texts.append(told)
                break
        else:
            runs.append((dict(values), [told]))
    return list(runs)


def operator_refuses(config: object, folder: Path) -> bool:
    """Whether `gangsched run --config` rejects a file with this content."""
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(config))
    try:
        load(file).policy()
    except InvalidConfig:
        return True
    return False


def configured(rendered: str) -> Any:
    """The operator's configuration from the rendered objects."""
    [text] = [each["data"]["config.yaml"] for each in yaml.safe_load_all(rendered) if each["kind"] == "ConfigMap"]
    return yaml.safe_load(text)


WRONG_CONFIG: list[tuple[Values, str]] = [
    ({"scheduler_names": ["a"]}, "at '/config': additional properties 'scheduler_names'"),
    ({"backoff": "10s"}, "at '/config/backoff': got string, want object"),
    ({"backoff": {"initial": "0h0s"}}, "at '/config/backoff/initial': '0h0s' does not match"),
    ({"repairDeadline": "30s1m"}, "at '/config/repairDeadline': '30s1m' does not match"),
    ({"repairDeadline": None}, "at '/config/repairDeadline': got null, want string"),
    ({"leaderElection": {"resourceName": ""}}, "at '/config/leaderElection/resourceName': minLength"),
    (
        {"leaderElection": {"resourceNamespace": "A"}},
        "at '/config/leaderElection/resourceNamespace': 'A' does not match",
    ),
    ({"maxPriority": "1"}, "at '/config/maxPriority': got string, want integer"),
    ({"maxPriority": 1_000_000_001}, "at '/config/maxPriority': maximum"),
    ({"maxPriority": -(2**31) - 1}, "at '/config/maxPriority': minimum"),
    ({"namespaceLimits": {"heldPercent": 101}}, "at '/config/namespaceLimits/heldPercent': maximum"),
    ({"schedulerNames": []}, "at '/config/schedulerNames': minItems"),
    ({"schedulerNames": ["a", "a"]}, "at '/config/schedulerNames': items at 0 and 1 are equal"),
    ({"namespace": "a/b"}, "at '/config/namespace': 'a/b' does not match"),
    ({"ownerGuard": "off"}, "at '/config/ownerGuard': value must be one of"),
    ({"gpuStrategy": "Best"}, "at '/config/gpuStrategy': 'Best' does not match"),
    ({"pfnet": {"gangAnnotationPrefix": "a b"}}, "at '/config/pfnet/gangAnnotationPrefix': 'a b' does not match"),
    (
        {"spark": {"driverPrioritizedNodeLabel": {"labelName": "tier"}}},
        "at '/config/spark/driverPrioritizedNodeLabel': missing property 'labelValuesDescendingPriority'",
    ),
    ({"fifo": {"sparkDrivers": "no"}}, "at '/config/fifo/sparkDrivers': got string, want boolean"),
    (
        {"fifo": {"enforceAfterPodAgeSecondsByInstanceGroup": {"batch": -1}}},
        "at '/config/fifo/enforceAfterPodAgeSecondsByInstanceGroup/batch': minimum",
    ),
]


@pytest.mark.parametrize(("config", "told"), together(WRONG_CONFIG))
def test_what_helm_refuses_of_the_configuration_it_refuses_by_name(helm: Helm, config, told):
    done = helm(values={"config": config})
    assert done.returncode == 1
    assert [text for text in told if text not in done.stderr] == []


def test_what_helm_refuses_of_the_configuration_the_operator_refuses_too(tmp_path):
    assert [config for config, _ in WRONG_CONFIG if not operator_refuses(config, tmp_path)] == []


@pytest.mark.parametrize(
    "config",
    [
        {"backoff": {"initial": "2m", "max": "1m"}},
        {"leaderElection": {"leaseDuration": "14s"}},
        {"maxHoldTime": "168h1s"},
        {"pfnet": {"gangScheduleTimeoutSecondsLimit": 20}},
        {"gpuStrategy": "example.com/not-installed"},
    ],
    ids=json.dumps,
)
def test_what_depends_on_several_values_a_sum_or_a_plug_in_is_left_to_the_operator(helm: Helm, tmp_path, config):
    assert helm(values={"config": config}).returncode == 0
    assert operator_refuses(config, tmp_path)


WRONG_VALUES: list[tuple[Values, str]] = [
    ({"imagee": {}}, "at '': additional properties 'imagee'"),
    ({"image": {"tag": 1.1}}, "at '/image/tag': got number, want string"),
    ({"image": {"pullPolicy": "always"}}, "at '/image/pullPolicy': value must be one of"),
    ({"image": None}, "at '': missing property 'image'"),
    ({"replicas": -1}, "at '/replicas': minimum"),
    ({"dialects": ["slurm"]}, "at '/dialects/0': value must be one of 'gangsched', 'palantir'"),
    ({"workloads": ["deployment"]}, "at '/workloads/0': value must be one of 'lws', 'jobset'"),
    ({"workloads": {"kinds": ["deployment"]}}, "at '/workloads/kinds/0': value must be one of 'lws', 'jobset'"),
    ({"workloads": {"custom": [{"name": "farm"}]}}, "at '/workloads/custom/0': missing properties 'apiVersion'"),
    ({"config": {"listen": ":1"}}, "at '/config': additional properties 'listen'"),
    ({"config": {"page": {"enabled": True}}}, "at '/config': additional properties 'page'"),
    ({"resources": {"request": {"cpu": "1"}}}, "at '/resources': additional properties 'request'"),
    ({"podAnnotations": {"a": 1}}, "at '/podAnnotations/a': got number, want string"),
    ({"tolerations": [{"keys": "a"}]}, "at '/tolerations/0': additional properties 'keys'"),
]


@pytest.mark.parametrize(("values", "told"), together(WRONG_VALUES))
def test_a_wrong_value_of_the_chart_itself_is_refused_by_name(helm: Helm, values, told):
    done = helm(values=values)
    assert done.returncode == 1
    assert [text for text in told if text not in done.stderr] == []


def test_every_setting_of_the_operator_is_taken_with_its_default_and_arrives(helm: Helm):
    settings = Settings().model_dump(mode="json", by_alias=True, exclude=THE_CHARTS)
    done = helm(values={"config": settings})
    assert done.returncode == 0, done.stderr
    own = configured(helm().stdout)
    assert configured(done.stdout) == settings | {"dialects": own["dialects"], "workloads": own["workloads"]}


def test_the_settings_that_the_page_for_palantirs_users_shows_are_taken_and_arrive(helm: Helm):
    page = (ROOT / "docs" / "migrate" / "palantir.md").read_text(encoding="utf-8")
    [settings] = [block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if block.startswith("spark:")]
    done = helm(values={"config": yaml.safe_load(settings)})
    assert done.returncode == 0, done.stderr
    assert configured(done.stdout).items() >= yaml.safe_load(settings).items()


@pytest.mark.parametrize(
    "values",
    [
        {},
        {
            "image": {"repository": "x", "tag": "1.0@sha256:0", "pullPolicy": "Always"},
            "imagePullSecrets": [{"name": "registry-login"}],
            "replicas": 1,
            "priorityAndFairness": False,
            "resources": {"requests": {"cpu": 1, "memory": "1Gi", "example.com/gpu": "1"}, "limits": None},
            "priorityClassName": "",
            "podAnnotations": {"example.com/scrape": "true"},
            "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
            "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}],
            "affinity": {"nodeAffinity": {}, "podAffinity": {}, "podAntiAffinity": {}},
            "config": {
                "maxPriority": -(2**31),
                "gpuStrategy": "BestFit",
                "bindConcurrency": 3.0,
                "maxHoldTime": "168h",
                "repairDeadline": "0h1m30s",
                "backoff": {"max": "604800s"},
                "pfnet": {"gangAnnotationPrefix": "gang"},
                "schedulerNames": ["a", "b"],
            },
        },
        {"replicas": None, "resources": None},
    ],
    ids=["nothing", "all", "null"],
)
def test_a_right_value_is_taken_and_the_operator_starts_with_it(helm: Helm, tmp_path, values):
    done = helm(values=values)
    assert done.returncode == 0, done.stderr
    assert not operator_refuses(configured(done.stdout), tmp_path)


def test_as_a_part_of_another_chart_it_takes_the_global_values_that_helm_adds(helm: Helm, tmp_path):
    whole = tmp_path / "whole"
    shutil.copytree(CHART, whole / "charts" / "gangsched")
    (whole / "Chart.yaml").write_text(yaml.safe_dump({"apiVersion": "v2", "name": "whole", "version": "1.0.0"}))

    def made(config: Values) -> subprocess.CompletedProcess[str]:
        return helm(values={"global": {"team": "a"}, "gangsched": {**IMAGE, "config": config}}, chart=whole)

    taken, refused = made({"repairDeadline": "20s"}), made({"repairDeadlin": "20s"})
    assert configured(taken.stdout)["repairDeadline"] == "20s"
    assert "at '/config': additional properties 'repairDeadlin' not allowed" in refused.stderr


def test_the_page_is_a_setting_and_adds_no_rights_and_no_ports(helm: Helm):
    without, served = helm().stdout, helm(values={"page": {"enabled": True, "port": 9000}}).stdout
    assert "page" not in configured(without)
    assert configured(served)["page"] == {"enabled": True, "port": 9000}
    before, after = (
        [each for each in yaml.safe_load_all(rendered) if each and each["kind"] != "ConfigMap"]
        for rendered in (without, served)
    )
    [deployment] = [each for each in before if each["kind"] == "Deployment"]
    [changed] = [each for each in after if each["kind"] == "Deployment"]
    sums = [
        each["spec"]["template"]["metadata"]["annotations"].pop("checksum/config") for each in (deployment, changed)
    ]
    assert sums[0] != sums[1]
    assert before == after


@pytest.mark.parametrize(
    ("preemption", "verbs"),
    [
        ({}, [["list", "watch"]]),
        ({"preemption": {"delay": "1m"}}, [["list", "watch"]]),
        ({"preemption": {"enabled": True}}, [["list", "watch"]]),
        ({"preemption": {"enabled": False}}, []),
    ],
)
def test_budgets_may_be_read_only_where_groups_may_preempt(helm: Helm, preemption: Mapping[str, Any], verbs: Any):
    done = helm("--show-only", "templates/rbac.yaml", values={"config": preemption})
    assert done.returncode == 0, done.stderr
    rules = [rule for each in yaml.safe_load_all(done.stdout) if each for rule in each.get("rules", [])]
    assert [rule["verbs"] for rule in rules if "poddisruptionbudgets" in rule["resources"]] == verbs


def test_the_network_policy_names_where_the_operator_may_connect_to(helm):
    """Regression: its egress named ports alone, so that any address could be reached on them."""

    def egress(**policy: object) -> list[Any]:
        done = helm(
            "--show-only", "templates/networkpolicy.yaml", values={"networkPolicy": {"enabled": True, **policy}}
        )
        assert done.returncode == 0, done.stderr
        found: list[Any] = yaml.safe_load(done.stdout)["spec"]["egress"]
        return found

    api, dns = egress(apiServerTo=[{"ipBlock": {"cidr": "10.0.0.1/32"}}])
    assert api["to"] == [{"ipBlock": {"cidr": "10.0.0.1/32"}}]
    assert [each["port"] for each in api["ports"]] == [443, 6443]
    assert {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}} in dns["to"]
    assert {each["port"] for each in dns["ports"]} == {53}
    unnamed, other = egress(dnsTo=[{"ipBlock": {"cidr": "10.0.0.10/32"}}])
    assert "to" not in unnamed
    assert other["to"] == [{"ipBlock": {"cidr": "10.0.0.10/32"}}]
    assert helm(values={"networkPolicy": {"enabled": True, "dnsTo": []}}).returncode != 0
