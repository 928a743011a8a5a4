"""Random device selectors from a seed, of types that the API server accepts: lists have elements of one type."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count

from tests.integration.oracle_devices import DRIVER

A = f"device.attributes['{DRIVER}']"
_DEEPEST = 4


class ExpressionDice:
    """Makes expressions on a device with the attributes `index`, `other`, `model`, `fresh` and `version`."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._numbers = count()
        self._variables: dict[str, list[str]] = {"int": [], "text": [], "map": [A]}

    def expression(self) -> str:
        """A Boolean expression."""
        return self._bool(0)

    def _one(self, depth: int, leaves: list[str], *made: Callable[[], str]) -> str:
        if depth >= _DEEPEST or not made or self._random.random() < 0.2:
            return self._random.choice(leaves)
        return self._random.choice(made)()

    def _with(self, kind: str, make: Callable[[], str], *names: str) -> str:
        """What `make` makes where variables of these names are known."""
        self._variables[kind] += names
        made = make()
        del self._variables[kind][-len(names) :]
        return made

    def _bool(self, depth: int) -> str:
        below = depth + 1

        def inner(make: Callable[[int], str]) -> str:
            return make(below)

        def both(sign: str) -> str:
            return f"({inner(self._bool)} {sign} {inner(self._bool)})"

        def compare(make: Callable[[int], str], *signs: str) -> str:
            return f"{inner(make)} {self._random.choice(signs)} {inner(make)}"

        ordered = ("==", "!=", "<", "<=", ">", ">=")
        return self._one(
            depth,
            ["true", "false", f"{A}.fresh", "device.allowMultipleAllocations", f"has({A}.none)"],
            lambda: both("&&"),
            lambda: both("||"),
            lambda: f"!({inner(self._bool)})",
            lambda: f"({inner(self._bool)} ? {inner(self._bool)} : {inner(self._bool)})",
            lambda: compare(self._int, *ordered),
            lambda: compare(self._text, *ordered),
            lambda: compare(self._ints, "==", "!="),
            lambda: f"{inner(self._int)} in {inner(self._ints)}",
            lambda: f"has({self._map()}.{self._random.choice(['model', 'none', 'index'])})",
            lambda: f"'{self._random.choice(['model', 'none'])}' in {self._map()}",
            lambda: (
                f"{inner(self._text)}.{self._random.choice(['startsWith', 'endsWith', 'contains'])}"
                f"({inner(self._text)})"
            ),
            lambda: f"{inner(self._text)}.matches('{self._random.choice(['^A', '[0-9]+$', 'b', ''])}')",
            lambda: self._loop(below),
            lambda: self._loop_of_two(below),
            lambda: self._bind(below, self._bool),
            lambda: f"({self._loop(below)} {self._random.choice(['&&', '||'])} {self._bind(below, self._bool)})",
            lambda: f"{self._quantity()}.{self._random.choice(['isGreaterThan', 'isLessThan'])}({self._quantity()})",
            lambda: f"{self._version()}.{self._random.choice(['isGreaterThan', 'isLessThan'])}({self._version()})",
            lambda: (
                f"sets.{self._random.choice(['contains', 'intersects', 'equivalent'])}"
                f"({inner(self._ints)}, {inner(self._ints)})"
            ),
            lambda: f"{inner(self._ints)}.isSorted()",
            lambda: f"{self._optional(below)}.hasValue()",
        )

    def _int(self, depth: int) -> str:
        below = depth + 1
        return self._one(
            depth,
            ["0", "1", "3", "-2", "9223372036854775807", f"{A}.index", f"{A}.none", *self._variables["int"] * 3],
            lambda: f"({self._int(below)} {self._random.choice('+-*/%')} {self._int(below)})",
            lambda: f"size({self._text(below)})",
            lambda: f"{self._ints(below)}.size()",
            lambda: f"{self._ints(below)}.{self._random.choice(['sum', 'min', 'max'])}()",
            lambda: f"{self._ints(below)}[{self._random.choice(['0', '1'])}]",
            lambda: f"{self._text(below)}.indexOf({self._text(below)})",
            lambda: f"{self._ints(below)}.{self._random.choice(['indexOf', 'lastIndexOf'])}({self._int(below)})",
            lambda: f"{self._quantity()}.compareTo({self._quantity()})",
            lambda: f"{self._version()}.{self._random.choice(['major', 'minor', 'patch'])}()",
            lambda: f"{self._optional(below)}.orValue({self._int(below)})",
            lambda: self._bind(below, self._int),
            lambda: f"int({A}.model.substring({self._random.choice('01')}))",
        )

    def _text(self, depth: int) -> str:
        below = depth + 1
        return self._one(
            depth,
            ["''", "'A100'", "'bé'", "'7'", f"{A}.model", "device.driver", *self._variables["text"] * 3],
            lambda: f"({self._text(below)} + {self._text(below)})",
            lambda: f"{self._text(below)}.{self._random.choice(['lowerAscii', 'upperAscii', 'trim'])}()",
            lambda: f"{self._text(below)}.substring({self._random.choice(['0', '1', '3'])})",
            lambda: f"{self._text(below)}.replace({self._text(below)}, {self._text(below)})",
            lambda: f"{self._text(below)}.charAt({self._random.choice(['0', '1'])})",
            lambda: f"string({self._int(below)})",
            lambda: f"[string({self._text(below)}), string({self._text(below)})].join({self._text(below)})",
            lambda: f"{self._text(below)}.find('[0-9]+')",
            lambda: f"'%s-%d'.format([{self._text(below)}, {self._int(below)}])",
        )

    def _ints(self, depth: int) -> str:
        below = depth + 1
        name = f"v{next(self._numbers)}"
        return self._one(
            depth,
            ["[1]", "[3, 1, 2]", "[2, 2]", "lists.range(3)"],
            lambda: f"[int({self._int(below)}), int({self._int(below)})]",
            lambda: f"{self._ints(below)}.map({name}, int({self._with('int', lambda: self._int(below), name)}))",
            lambda: f"{self._ints(below)}.filter({name}, {self._with('int', lambda: self._bool(below), name)})",
            lambda: f"{self._ints(below)}.{self._random.choice(['sort', 'distinct', 'reverse'])}()",
            lambda: f"{self._ints(below)}.sortBy({name}, {self._with('int', lambda: self._int(below), name)})",
            lambda: f"({self._ints(below)} + {self._ints(below)})",
            lambda: f"{self._ints(below)}.slice(0, 1)",
            lambda: f"[{self._ints(below)}, {self._ints(below)}].flatten()",
            lambda: (
                f"{self._ints(below)}.transformList({name}, {name}x, "
                f"int({self._with('int', lambda: self._int(below), name, name + 'x')}))"
            ),
        )

    def _loop(self, depth: int) -> str:
        name, macro = f"v{next(self._numbers)}", self._random.choice(["all", "exists", "exists_one"])
        if self._random.random() < 0.3:
            return f"{self._map()}.{macro}({name}, {self._with('text', lambda: self._bool(depth), name)})"
        numbers = self._random.choice([f"[{A}.index, {A}.other]", self._ints(depth)])
        return f"{numbers}.{macro}({name}, {self._with('int', lambda: self._bool(depth), name)})"

    def _loop_of_two(self, depth: int) -> str:
        name, macro = f"v{next(self._numbers)}", self._random.choice(["all", "exists", "existsOne"])
        made = self._with("int", lambda: self._bool(depth), name, name + "x")
        return f"{self._ints(depth)}.{macro}({name}, {name}x, {made})"

    def _bind(self, depth: int, make: Callable[[int], str]) -> str:
        name, kind = f"v{next(self._numbers)}", self._random.choice(["int", "text", "map"])
        value = {"int": self._int, "text": self._text, "map": lambda _: self._map()}[kind](depth)
        return f"cel.bind({name}, {value}, {self._with(kind, lambda: make(depth), name)})"

    def _optional(self, depth: int) -> str:
        name = f"v{next(self._numbers)}"
        return self._one(
            depth,
            [f"{self._map()}.?index", f"{self._map()}[?'none']", f"[1, 2][?{self._random.choice(['1', '2'])}]"],
            lambda: f"{self._optional(depth + 1)}.or({self._optional(depth + 1)})",
            lambda: (
                f"{self._optional(depth + 1)}.optMap({name}, {self._with('int', lambda: self._int(depth + 1), name)})"
            ),
            lambda: f"optional.of({self._int(depth + 1)})",
        )

    def _map(self) -> str:
        return self._random.choice(self._variables["map"])

    def _quantity(self) -> str:
        known = f"device.capacity['{DRIVER}'].memory"
        return self._random.choice(["quantity('1Gi')", "quantity('40Gi')", known, f"{known}.add(quantity('1'))"])

    def _version(self) -> str:
        return self._random.choice(["semver('1.10.0')", "semver('1.2.0-a')", f"{A}.version"])
