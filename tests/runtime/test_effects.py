from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, cast

import pytest

import gangsched
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.demands import DemandKey, DemandObject, PoolDemand
from gangsched.core.objects.effects import (
    BindPod,
    DeleteGroup,
    DropDemand,
    Effect,
    EmitEvent,
    EvictPod,
    LookUpOwner,
    MakeGroup,
    PatchPodCondition,
    PatchStatus,
    Prebind,
    PutCondition,
    PutDemand,
    PutPhase,
    UndoPrebinding,
    WithdrawBinding,
)
from gangsched.core.objects.podgroup import ForeignPhase, GroupCondition, GroupSpec
from gangsched.core.objects.prebindings import SelectNode
from gangsched.core.objects.results import (
    BindRefused,
    EvictionRefused,
    GroupNotMade,
    PrebindRefused,
    Refused,
    Spared,
    StatusRefused,
)
from gangsched.core.objects.status import GroupStatus
from gangsched.core.objects.workload import Reference
from gangsched.kube.client.credentials import Connection
from gangsched.kube.client.lease import LeaseClient
from gangsched.kube.client.session import ApiSession
from gangsched.kube.writing.volcano_phases import Rival
from gangsched.kube.writing.write_results import Outcome, WriteResult
from gangsched.runtime.effect_table import table
from gangsched.runtime.write import Write
from tests.runtime.fake_table import REAL, job

KEY, DEMAND = GroupKey("ns", "g"), DemandKey("ns", "g")
SPEC = GroupSpec(min_member=2)
POOL = PoolDemand(instance_group="batch", units=())
SELECTED = SelectNode("ns", "p", "c", "n1")
SAMPLES: tuple[Effect, ...] = (
    BindPod(uid="u", namespace="ns", name="p", node="n1"),
    WithdrawBinding(uid="u", node="n1"),
    Prebind(uid="u", prebinding=SELECTED),
    UndoPrebinding(prebinding=SELECTED),
    EvictPod(uid="u", namespace="ns", name="p"),
    LookUpOwner(uid="u", namespace="ns", name="p"),
    PatchStatus(key=KEY, uid="u", status=GroupStatus()),
    MakeGroup(key=KEY, spec=SPEC, owner=Reference("v1", "Pod", "driver", "d")),
    DeleteGroup(key=KEY, uid="u", resource_version="7"),
    PatchPodCondition(uid="u", namespace="ns", name="p", reason="GangIncomplete", message="1 more"),
    EmitEvent(kind="Pod", namespace="ns", name="p", uid="u", type="Normal", reason="R", action="A", note=""),
    PutPhase(key=KEY, uid="u", phase=ForeignPhase.INQUEUE),
    PutCondition(key=KEY, uid="u", condition=GroupCondition(scheduled=True, reason="Scheduled"), version="v1beta1"),
    PutDemand(DemandObject(DEMAND, "p", "u", POOL)),
    DropDemand(DEMAND, "u"),
)
SENT = [effect for effect in SAMPLES if not isinstance(effect, WithdrawBinding)]


def test_each_effect_of_the_core_has_one_row_and_each_row_an_effect() -> None:
    assert set(REAL) == set(Effect.__subclasses__())
    assert {type(effect) for effect in SAMPLES} == set(REAL)


def test_only_the_table_tells_one_effect_from_another() -> None:
    """The engine logs refusals and what a dry run would do; bindings and evictions have metrics of their own."""
    kinds = {kind.__name__ for kind in Effect.__subclasses__()}
    shell = Path(gangsched.__file__).parent
    named = {}
    for path in (*shell.glob("runtime/*.py"), *shell.glob("operator/*.py"), shell / "app.py"):
        names = {node.id for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Name)}
        named[path.name] = names & kinds
    assert named.pop("effect_table.py") == kinds
    assert {name: found for name, found in named.items() if found} == {
        "engine.py": {"BindPod", "EmitEvent", "EvictPod"},
        "metrics.py": {"BindPod", "EvictPod"},
    }


@pytest.mark.parametrize("effect", SENT, ids=lambda effect: type(effect).__name__)
def test_what_is_said_of_a_write_in_the_log_names_its_object(effect: Effect) -> None:
    assert job(effect).write.about(effect).startswith(("ns/p", "ns/g", "PersistentVolumeClaim ns/p"))


def test_no_two_kinds_share_a_key_but_those_that_take_each_others_place() -> None:
    keys = [job(effect).key for effect in SENT]
    assert len(set(keys)) == len(keys) - 1
    assert keys[-1] == keys[-2]


async def test_a_server_that_is_not_there_makes_every_write_unavailable() -> None:
    async def authorization() -> str | None:
        return None

    session = ApiSession(Connection(server="http://127.0.0.1:9", authorization=authorization))
    rival = Rival(LeaseClient(session=session, namespace="v", name="v"), lambda: 0.0)
    rows = table(session, instance="i", now=lambda: 0.0, rival=rival)
    answers = {type(effect): await cast("Write[Any]", rows[type(effect)]).send(effect) for effect in SENT}
    await session.close()
    said = answers[BindPod].message
    assert "cannot be reached" in said
    made = answers.pop(MakeGroup)
    assert made == WriteResult(Outcome.REFUSED, GroupNotMade(KEY, made.message), message=made.message)
    assert {(answer.passing, answer.message) for answer in answers.values()} == {(True, said)}
    assert {kind: answer.event for kind, answer in answers.items() if answer.event is not None} == {
        BindPod: BindRefused("u", "n1", Refused.UNAVAILABLE, said),
        Prebind: PrebindRefused("u", SELECTED, said),
        EvictPod: EvictionRefused("u", Spared.UNAVAILABLE, said),
        PatchStatus: StatusRefused(KEY, stale=False),
    }
