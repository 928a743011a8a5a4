"""Whether an evicted pod counts as a failure of its Job."""

from __future__ import annotations

from msgspec import Struct

from gangsched.core.objects.wording import printable

_IGNORE = "Ignore"
_ENDED_BY_SIGNAL = (137, 143)
"""Exit codes of a container that ended by SIGKILL or SIGTERM, as in an eviction."""


class _ConditionPattern(Struct, gc=False):
    type: str = ""
    status: str | None = None


class _ExitCodes(Struct, gc=False):
    operator: str = ""
    values: list[int] | None = None


class _Rule(Struct, gc=False, rename="camel"):
    action: str = ""
    on_pod_conditions: list[_ConditionPattern] | None = None
    on_exit_codes: _ExitCodes | None = None


class FailurePolicy(Struct, gc=False):
    """A Job's podFailurePolicy: its controller applies the first rule that matches a failed pod."""

    rules: list[_Rule] | None = None


def why_counted(name: str, policy: FailurePolicy | None) -> str:
    """Why an eviction would count as a failure of the Job of this name, as a sentence; empty if it would not."""
    rules = (policy.rules if policy is not None else None) or ()
    ignoring = next((index for index, rule in enumerate(rules) if rule.action == _IGNORE and _by_condition(rule)), None)
    if ignoring is None:
        return (
            f"Job {name} has no podFailurePolicy that ignores DisruptionTarget, so an eviction would count as a failure"
            " of it: delete it and create it again with one, because a Job's policy cannot be changed"
        )
    for number, rule in enumerate(rules[:ignoring], start=1):
        if rule.action != _IGNORE and (_by_condition(rule) or _by_exit_code(rule)):
            return (
                f"rule {number} of the podFailurePolicy of Job {name} ({printable(rule.action)}) matches evicted pods"
                " before the one that ignores DisruptionTarget, so an eviction would count as a failure: delete the Job"
                " and create it again with that rule first, because its policy cannot be changed"
            )
    return ""


def _by_condition(rule: _Rule) -> bool:
    """Whether the rule matches every evicted pod, because of the condition DisruptionTarget."""
    return any(
        pattern.type == "DisruptionTarget" and pattern.status in (None, "", "True")
        for pattern in rule.on_pod_conditions or ()
    )


def _by_exit_code(rule: _Rule) -> bool:
    """Whether the rule matches a container that an eviction's signal ended."""
    if rule.on_exit_codes is None:
        return False
    values = rule.on_exit_codes.values or ()
    return any((code in values) is (rule.on_exit_codes.operator == "In") for code in _ENDED_BY_SIGNAL)
