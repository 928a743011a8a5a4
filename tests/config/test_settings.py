from __future__ import annotations

from pathlib import Path

import pytest

from documentation.generate import ROOT
from gangsched.config.contention_settings import Preemption as PreemptionSettings
from gangsched.config.dialect_settings import Fifo, Pfnet, PrioritizedNodeLabel, Spark
from gangsched.config.invalid_config import InvalidConfig
from gangsched.config.settings import Backoff, LeaderElection, Settings, load
from gangsched.core.objects.policy import (
    Aging,
    FifoRules,
    NamespaceLimits,
    OwnerGuard,
    Policy,
    Preemption,
    PriorityFrom,
    Reservations,
)


def written(folder: Path, text: str) -> Path:
    """A configuration file with this text."""
    path = folder / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_defaults_are_those_of_the_core():
    assert load().policy() == Policy()


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "---\n"])
def test_an_empty_file_means_the_defaults(tmp_path, text):
    assert load(written(tmp_path, text)) == Settings()


def test_every_key_is_read(tmp_path):
    text = """
        schedulerNames: [gangsched, batch]
        namespace: team
        defaultMaxScheduleTime: 5m
        maxPriority: 1000
        priorityFrom: Members
        maxHoldTime: 1h
        restartHold: 20s
        namespaceLimits: {heldPercent: 10, heldPlaces: 50, freePlaces: 0, waitingGroups: 20}
        backoff: {initial: 1s, max: 1h}
        reservation: {starvationAge: 5m, backfillBy: Limits}
        aging: {every: 10m, by: 5, most: 50}
        repairDeadline: 45s
        preBindTimeout: 20m
        bindConcurrency: 8
        gpuStrategy: MostUsed
        ownerGuard: "Off"
        leaderElection:
          {leaseDuration: 30s, renewDeadline: 20s, retryPeriod: 3s, resourceName: mine, resourceNamespace: sys}
        listen: 127.0.0.1:0
        page: {enabled: true, port: 9001}
        podGroups: {deleteFinished: true, ttlAfterFinished: 1h}
        logFormat: json
        logLevel: warning
        dialects: [koordinator, pfnet, volcano]
        workloads: [job]
        pfnet:
          gangAnnotationPrefix: scheduling.k8s.pfn.io/gang
          gangScheduleTimeoutSecondsLimit: 300
          gangScheduleDefaultTimeoutSeconds: 120
          gangScheduleTimeoutJitterSeconds: 0
        spark:
          binpack: single-az-tightly-pack
          driverPrioritizedNodeLabel: {labelName: tier, labelValuesDescendingPriority: [steady, spot]}
          executorPrioritizedNodeLabel: {labelName: tier, labelValuesDescendingPriority: [spot]}
        fifo:
          instanceGroupLabel: pool
          sparkDrivers: false
          podGroups: [batch]
          enforceAfterPodAgeSeconds: 60
          enforceAfterPodAgeSecondsByInstanceGroup: {batch: 5}
        volcano:
          writePhase: [team-a, team-b]
          schedulerLease: {name: vc, namespace: batch-system}
        native: {writeCondition: false}
        preemption:
          enabled: false
          delay: 2m
          victims: All
          budgets: Prefer
          minRuntime: 1h
          mostVictimsPerMinute: 60
          spareUncontrolled: true
    """
    settings = load(written(tmp_path, text))
    assert set(Settings.model_fields) == settings.model_fields_set
    assert settings.policy(seed=7) == Policy(
        scheduler_names=("gangsched", "batch"),
        namespace="team",
        default_max_schedule_time_s=300.0,
        max_priority=1000,
        priority_from=PriorityFrom.MEMBERS,
        max_hold_s=3600.0,
        restart_hold_s=20.0,
        namespace_limits=NamespaceLimits(held_percent=10, held_places=50, free_places=0, waiting_groups=20),
        backoff_initial_s=1.0,
        backoff_max_s=3600.0,
        repair_deadline_s=45.0,
        pre_bind_timeout_s=1200.0,
        seed=7,
        gpu_strategy="MostUsed",
        fifo=FifoRules(label="pool", groups=frozenset({"batch"}), after_s=60.0, after_s_by_group={"batch": 5.0}),
        owner_guard=OwnerGuard.OFF,
        reservations=Reservations(starvation_age_s=300.0, by_promises=False),
        aging=Aging(every_s=600.0, by=5, most=50),
        preemption=Preemption(
            enabled=False,
            delay_s=120.0,
            all_victims=True,
            exceeds_budgets=True,
            min_runtime_s=3600.0,
            victims_per_minute=60,
            spares_uncontrolled=True,
        ),
    )
    assert (settings.fifo.spark_drivers, settings.spark.binpack) == (False, "single-az-tightly-pack")
    assert settings.spark.driver_prioritized_node_label is not None
    assert settings.spark.driver_prioritized_node_label.label_values_descending_priority == ("steady", "spot")
    assert settings.spark.executor_prioritized_node_label is not None
    assert settings.spark.executor_prioritized_node_label.label_name == "tier"
    assert (settings.page.enabled, settings.page.port) == (True, 9001)
    assert (settings.bind_concurrency, settings.listen) == (8, "127.0.0.1:0")
    assert (settings.log_format, settings.log_level) == ("json", "warning")
    assert tuple(settings.leader_election.model_dump().values()) == ("30s", "20s", "3s", "mine", "sys")
    assert settings.volcano.model_dump() == {
        "write_phase": ("team-a", "team-b"),
        "scheduler_lease": {"name": "vc", "namespace": "batch-system"},
    }
    assert not settings.native.write_condition
    assert settings.dialects == ("koordinator", "pfnet", "volcano")
    assert tuple(settings.pfnet.model_dump().values()) == ("scheduling.k8s.pfn.io/gang", 300, 120, 0)


def test_the_example_of_the_page_for_those_who_come_from_palantir_is_read(tmp_path):
    page = (ROOT / "docs" / "migrate" / "palantir.md").read_text(encoding="utf-8")
    example = page.split("```yaml\n")[2].partition("```\n")[0]
    spark = load(written(tmp_path, example)).spark
    assert spark.binpack == "tightly-pack"
    assert spark.driver_prioritized_node_label is not None
    assert spark.executor_prioritized_node_label is not None


def test_flags_win_over_the_file(tmp_path):
    path = written(tmp_path, "schedulerNames: [a]\nnamespace: b\n")
    settings = load(path, flags={"schedulerNames": ["c", "d"], "logFormat": "json"})
    assert (settings.scheduler_names, settings.namespace, settings.log_format) == (("c", "d"), "b", "json")


def test_a_wrong_flag_is_blamed_on_the_command_line(tmp_path):
    with pytest.raises(InvalidConfig, match=r"^command line: listen: 'here' is not an address: write HOST:PORT"):
        load(written(tmp_path, "namespace: a"), flags={"listen": "here"})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("schedulerName: a", "schedulerName is not a known key: correct or remove it; known keys are aging, backoff, "),
        ("{volcano: {writePhase: [a]}, dialects: [gangsched]}", "volcano.writePhase needs the dialect volcano: "),
        ("volcano: {writePhase: [a, a]}", "volcano.writePhase: a name occurs more than once: write every name once"),
        ("volcano: {writePhase: true}", "volcano.writePhase must be a list"),
        ("volcano: {writePhase: ['*']}", "volcano.writePhase[0] must match pattern "),
        ("scheduler_names: [a]", "scheduler_names is not a known key"),
        ("backoff: {initial: 1s, min: 1s}", "backoff.min is not a known key"),
        ("backoff: {initial: 2m, max: 1m}", "backoff: max must not be below initial: raise backoff.max or lower"),
        ("backoff: {initial: 1h}", "backoff: max must not be below initial"),
        ("leaderElection: {leaseDuration: 14s}", "leaderElection: leaseDuration must be at least 5s longer than"),
        ("leaderElection: {retryPeriod: 10s}", "leaderElection: retryPeriod must be below renewDeadline"),
        ("leaderElection: {resourceName: ''}", "leaderElection.resourceName must have at least 1 character"),
        ("backoff: 10s", "backoff must be a mapping with the keys initial, max"),
        (
            "fifo: {enforceAfterPodAgeSecondsByInstanceGroup: 5}",
            "fifo.enforceAfterPodAgeSecondsByInstanceGroup must be a mapping",
        ),
        ("defaultMaxScheduleTime: 60", "defaultMaxScheduleTime: '60' is not a duration"),
        ("defaultMaxScheduleTime: 200h", "defaultMaxScheduleTime: '200h' is out of range: a duration here is from 1s"),
        ("repairDeadline:", "repairDeadline: 'None' is not a duration"),
        ("maxPriority: '1'", "maxPriority must be a valid integer"),
        ("maxPriority: 1000000001", "maxPriority must be less than or equal to 1000000000"),
        ("bindConcurrency: 0", "bindConcurrency must be greater than or equal to 1"),
        ("schedulerNames: []", "schedulerNames must have at least 1 item"),
        ("schedulerNames: gangsched", "schedulerNames must be a list"),
        ("schedulerNames: ['']", "schedulerNames[0] must have at least 1 character"),
        ("schedulerNames: [a, a]", "schedulerNames: a name occurs more than once: write every name once"),
        ("dialects: [slurm]", "dialects[0] must be 'gangsched', 'palantir', "),
        ("dialects: []", "dialects must have at least 1 item"),
        ("dialects: [pfnet, pfnet]", "dialects: a name occurs more than once: write every name once"),
        ("pfnet: {gangScheduleTimeoutSecondLimit: 100}", "pfnet.gangScheduleTimeoutSecondLimit is not a known key"),
        ("pfnet: {gangScheduleTimeoutSecondsLimit: 20}", "pfnet: gangScheduleDefaultTimeoutSeconds must not be above"),
        ("pfnet: {gangScheduleDefaultTimeoutSeconds: 0}", "pfnet.gangScheduleDefaultTimeoutSeconds must be greater"),
        ("pfnet: {gangScheduleTimeoutJitterSeconds: -1}", "pfnet.gangScheduleTimeoutJitterSeconds must be greater"),
        ("pfnet: {gangAnnotationPrefix: 'a b'}", "pfnet.gangAnnotationPrefix: 'a b' is not a valid annotation prefix"),
        ("spark: {binpack: tight}", "spark.binpack must be 'distribute-evenly', "),
        (
            "spark: {executorPrioritizedNodeLabel: {label-name: tier, labelValuesDescendingPriority: [a]}}",
            "spark.executorPrioritizedNodeLabel.labelName is missing: write it; spark.executorPrioritizedNodeLabel.la",
        ),
        (
            "spark: {driverPrioritizedNodeLabel: tier}",
            "spark.driverPrioritizedNodeLabel must be a mapping with the keys labelName, ",
        ),
        ("fifo: {enforceAfterPodAgeSeconds: -1}", "fifo.enforceAfterPodAgeSeconds must be greater than or equal to 0"),
        ("logFormat: xml", "logFormat must be 'text' or 'json'"),
        ("listen: 8080", "listen must be a valid string"),
        ("listen: localhost", "listen: 'localhost' is not an address: write HOST:PORT, such as :8080"),
        ("listen: ':65536'", "listen: ':65536' is not an address"),
        ("listen: '::1:80'", "listen: '::1:80' is not an address"),
        ("- a", "must be a mapping of settings: write one 'key: value' per line"),
        ("1: a", "must be a mapping of settings: write one 'key: value' per line"),
        ("a: [", "is not YAML: while parsing"),
        ("podGroups: {ttlAfterFinished: 1h}", "podGroups: ttlAfterFinished has no effect without deleteFinished"),
        ("podGroups: {deleteFinished: true, ttlAfterFinished: 8d}", "podGroups.ttlAfterFinished"),
        ("preemption: {delay: -1s}", "preemption.delay: '-1s' is not a duration"),
        ("preemption: {minRuntime: 169h}", "preemption.minRuntime: '169h' is out of range: a duration here is from 0s"),
        ("preemption: {victims: Others}", "preemption.victims must be 'Own' or 'All'"),
        ("preemption: {budgets: Ignore}", "preemption.budgets must be 'Honour' or 'Prefer'"),
        ("preemption: {mostVictimsPerMinute: 0}", "preemption.mostVictimsPerMinute must be greater than or equal to 1"),
        ("namespace: a/b", "namespace must match pattern "),
        ("leaderElection: {resourceNamespace: A}", "leaderElection.resourceNamespace must match pattern "),
        ("namespace: 1\nlogFormat: xml", "namespace must be a valid string; logFormat must be 'text' or 'json'"),
    ],
)
def test_what_is_wrong_is_told_with_file_key_and_remedy(tmp_path, text, told):
    path = written(tmp_path, text)
    with pytest.raises(InvalidConfig) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: {told}")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_missing_is_told(tmp_path):
    path = tmp_path / "none.yaml"
    with pytest.raises(InvalidConfig) as caught:
        load(path)
    assert str(caught.value) == f"{path}: cannot be read (No such file or directory): name a file that exists"


def test_a_file_that_is_no_text_is_told(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidConfig, match="is not YAML"):
        load(path)


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        (":8080", ("", 8080)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("localhost:65535", ("localhost", 65535)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_the_address_to_listen_on_is_split(listen, address):
    assert load(flags={"listen": listen}).listen_address == address


def test_every_setting_is_described():
    parts = (Settings, Backoff, LeaderElection, Pfnet, Spark, PrioritizedNodeLabel, Fifo, PreemptionSettings)
    texts = {(part.__name__, name): info.description for part in parts for name, info in part.model_fields.items()}
    assert [name for name, text in texts.items() if not (text or "").endswith(".")] == []


@pytest.mark.parametrize("text", ["a: &a {b: *a}", "a: " + "[" * 10_000, "a: 1\n---\nb: 2"])
def test_yaml_that_nobody_can_follow_is_refused(tmp_path, text):
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(InvalidConfig, match="correct the file"):
        load(file)
