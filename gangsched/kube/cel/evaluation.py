"""Evaluates device selectors in the Common Expression Language (CEL).

Source: k8s.io/dynamic-resource-allocation/cel at v1.37.2. An expression that uses anything unknown to `cel_syntax.py`,
`cel_functions.py` and the library is an error, and the pod is refused.
"""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from typing import Any

import cel

from gangsched.core.objects.offered_devices import Attribute, AttributeType, SelectorResult
from gangsched.core.objects.quantity import InvalidQuantity
from gangsched.kube.cel.functions import FUNCTIONS, quantity, semver
from gangsched.kube.cel.syntax import readable

MOST_LOOPS = 3
"""Largest number of loops over lists in an expression. Each multiplies the work; the API server limits the cost of each
expression."""
logging.getLogger(cel.__name__).setLevel(logging.ERROR)  # it logs a warning with users' text for each call that fails
_LONGEST = 10 * 1024
_LOOPS = re.compile(r"\.\s*(?:all|exists|exists_?[oO]ne|map|filter|sortBy|transform\w+)\s*\(")
_DOMAINS = re.compile(r"device\s*\.\s*(attributes|capacity)\s*\[\s*(?:\"([^\"]*)\"|'([^']*)')\s*\]")
_ASKS_FOR_DOMAINS = re.compile(r"\bin\s+device\s*\.\s*(?:attributes|capacity)\s*(?![\s\[.])")


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
    found: dict[str, dict[str, dict[str, Any]]] = {"attributes": {}, "capacity": {}}
    for field, domain in domains:
        found[field][domain] = {}
    try:
        for each in attributes:
            domain, _, name = each.name.partition("/")
            found["attributes"].setdefault(domain, {})[name] = _value(each)
        for full_name, amount in capacity:
            domain, _, name = full_name.partition("/")
            found["capacity"].setdefault(domain, {})[name] = quantity(amount)
        context = cel.Context(
            variables={"device": {"driver": driver, "allowMultipleAllocations": multiple, **found}}, functions=FUNCTIONS
        )
        result = program.execute(context)
    except (ArithmeticError, InvalidQuantity, LookupError, RuntimeError, TypeError, ValueError):
        return SelectorResult.ERROR
    if not isinstance(result, bool):
        return SelectorResult.ERROR
    return SelectorResult.TRUE if result else SelectorResult.FALSE


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> tuple[cel.Program | None, tuple[tuple[str, str], ...]]:
    """The program, and the domains that it reads, which need not exist. The program is None for an invalid expression.

    An expression that is too long or has too many loops counts as invalid. There are no domains if the expression asks
    with `in` whether a domain exists.
    """
    if len(expression) > _LONGEST or len(_LOOPS.findall(expression)) > MOST_LOOPS:
        return None, ()
    try:
        program = cel.compile(readable(expression))
    except (RuntimeError, TypeError, ValueError):
        return None, ()
    if _ASKS_FOR_DOMAINS.search(expression):
        return program, ()
    return program, tuple((field, double or single) for field, double, single in _DOMAINS.findall(expression))


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
