"""Evaluates device selectors in the Common Expression Language (CEL) with Google's library, cel-expr-python.

Source: k8s.io/dynamic-resource-allocation/cel at v1.37.2. An expression that uses anything unknown to the library and
to `functions.py` and `networks.py` is an error, and the pod is refused.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from cel_expr_python import cel

from gangsched.core.objects.offered_devices import Attribute, AttributeType, SelectorResult
from gangsched.kube.cel.functions import FUNCTIONS, quantity, semver
from gangsched.kube.cel.networks import NETWORK_FUNCTIONS
from gangsched.kube.cel.syntax_tree import content

LONGEST_RANGE = 100
"""Largest argument of `lists.range`; the library makes a list of any length, in each of the 10,000 steps of loops."""
_LONGEST = 10 * 1024
_EXTENSIONS = ("bindings", "lists", "optional", "sets", "two-var-comprehensions")
"""The library's extensions that Kubernetes has too. That of texts is ours, because it cannot be added to."""


@lru_cache(maxsize=10_000)
def evaluate(
    expression: str,
    driver: str,
    attributes: tuple[Attribute, ...],
    capacity: tuple[tuple[str, str], ...],
    *,
    multiple: bool = False,
) -> SelectorResult:
    """Whether the expression selects the device. One that does not compile, fails or is not a Boolean is an error."""
    program, domains = _compiled(expression)
    if program is None:
        return SelectorResult.ERROR
    values: dict[str, dict[str, dict[str, Any]]] = {"attributes": {}, "capacity": {}}
    for field, domain in domains:
        values[field][domain] = {}
    try:
        for attribute in attributes:
            domain, _, name = attribute.name.partition("/")
            values["attributes"].setdefault(domain, {})[name] = _value(attribute)
        for full_name, amount in capacity:
            domain, _, name = full_name.partition("/")
            values["capacity"].setdefault(domain, {})[name] = quantity(amount)
        device = {"driver": driver, "allowMultipleAllocations": multiple, **values}
        result = program.eval(data={"device": device})
    except (RuntimeError, TypeError, ValueError):
        return SelectorResult.ERROR
    if result.type() != cel.Type.BOOL:
        return SelectorResult.ERROR
    return SelectorResult.TRUE if result.value() else SelectorResult.FALSE


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> tuple[cel.Expression | None, frozenset[tuple[str, str]]]:
    """The program, and the domains that it reads, which need not exist. The program is None for an invalid expression.

    There are no domains if the expression also asks which domains there are.
    """
    if len(expression) > _LONGEST:
        return None, frozenset()
    try:
        program = _environment().compile(expression)
    except (RuntimeError, TypeError, ValueError):
        return None, frozenset()
    syntax = content(program.serialize())
    if syntax.misread or syntax.longest_range > LONGEST_RANGE:
        return None, frozenset()
    return program, frozenset() if syntax.whole else frozenset(syntax.domains)


def may_be_misread(expression: str) -> bool:
    """Whether a valid expression is refused because the library might evaluate it wrongly."""
    return content(_environment().compile(expression).serialize()).misread


@lru_cache(maxsize=1)
def _environment() -> cel.Env:
    declared = [
        cel.FunctionDecl(
            name,
            [
                cel.Overload(
                    f"{name}_{number}",
                    return_type=overload.result,
                    parameters=list(overload.parameters),
                    is_member=overload.member,
                    impl=overload.impl,
                )
                for number, overload in enumerate(overloads)
            ],
        )
        for name, overloads in (FUNCTIONS | NETWORK_FUNCTIONS).items()
    ]
    extensions = "".join(f"- name: {name}\n" for name in _EXTENSIONS)
    config = cel.NewEnvConfigFromYaml(f"name: devices\nextensions:\n{extensions}")
    return cel.NewEnv(config=config, variables={"device": cel.Type.DYN}, functions=declared)


def _value(attribute: Attribute) -> object:
    match attribute.type:
        case AttributeType.INT:
            return int(attribute.value)
        case AttributeType.BOOL:
            return attribute.value == "true"
        case AttributeType.STRING:
            return attribute.value
        case AttributeType.VERSION:
            return semver(attribute.value)
    raise ValueError(f"{attribute.name} has a type that expressions cannot read")
