"""Rewrites expressions for the library: syntax that it lacks becomes calls of functions.

`cel.bind(x, e, b)` becomes `[e].map(x, b)[0]`, `e.?f` becomes `e.optionalField('f')`, `e[?k]` the same with k, and
`o.optMap(x, e)` becomes `o.present().map(x, e).firstPresent()`. `matches(a, b)` becomes `(a).matches(b)`. A macro that
iterates over a list with two variables iterates over its pairs instead: `l.all(i, v, e)` becomes
`l.entries().all(pair, [pair[0]].all(i, [pair[1]].all(v, e)))`. A function in a namespace, such as `sets.contains`, gets
a name without a dot. `size` is renamed, because the library's own function counts bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*)
    |(?P<text>[bB]?[rR](?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n]*"|'[^'\n]*')
        |[bB]?(?:\"{3}(?:\\.|.)*?\"{3}|'{3}(?:\\.|.)*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    |(?P<number>(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)[uU]?)
    |(?P<name>[A-Za-z_][A-Za-z_0-9]*)
    |(?P<other>\.\?|\[\?|&&|\|\||[<>=!]=|.)""",
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {"(": ")", "[": "]", "[?": "]", "{": "}"}
_NAMESPACES = ("sets", "strings", "lists", "ip")
_OWN = {"size": "sizeOf"}
_OF_PAIRS = {
    "all": "all",
    "exists": "exists",
    "existsOne": "exists_one",
    "exists_one": "exists_one",
    "transformList": "map",
    "transformMap": "map",
}
_ONE, _TWO = 2, 3
"""The numbers of arguments of macros with one variable and with two."""
_BOUND = {"optMap": "firstPresent", "optFlatMap": "firstOfFirst"}


def readable(expression: str) -> str:
    """The expression in the library's syntax. An invalid expression stays invalid."""
    tokens = [found for found in _TOKEN.finditer(expression) if found.lastgroup != "blank"]
    return " ".join(_written([each[0] for each in tokens]))


def _written(tokens: Sequence[str]) -> list[str]:
    out: list[str] = []
    at = 0
    while at < len(tokens):
        word, follows = tokens[at], tokens[at + 1 : at + 2]
        opened = tokens[at : at + 4]
        if opened == ["cel", ".", "bind", "("]:
            end = _end(tokens, at + 3)
            name, value, body = _arguments(tokens[at + 4 : end], 3)
            out += ["[", *_written(value), "]", ".", "map", "(", *name, ",", *_written(body), ")", "[", "0", "]"]
            at = end + 1
        elif word == "." and follows and follows[0] in _BOUND and tokens[at + 2 : at + 3] == ["("]:
            end = _end(tokens, at + 2)
            name, body = _arguments(tokens[at + 3 : end], 2)
            value = _written(body)
            if follows[0] == "optFlatMap":
                value = ["(", *value, ")", ".", "present", "(", ")"]
            out += [".", "present", "(", ")", ".", "map", "(", *name, ",", *value, ")"]
            out += [".", _BOUND[follows[0]], "(", ")"]
            at = end + 1
        elif word == "." and tokens[at + 2 : at + 3] == ["("] and (through := _through(tokens, at)):
            out += through
            at = _end(tokens, at + 2) + 1
        elif opened[:2] == ["matches", "("] and out[-1:] != ["."]:
            end = _end(tokens, at + 1)
            text, pattern = _arguments(tokens[at + 2 : end], 2)
            out += ["(", *_written(text), ")", ".", "matches", "(", *_written(pattern), ")"]
            at = end + 1
        elif word == ".?" and follows:
            out += [".", "optionalField", "(", f"'{follows[0]}'", ")"]
            at += 2
        elif word == "[?" and out and (out[-1] in ")]" or out[-1][-1].isalnum()):
            end = _end(tokens, at)
            out += [".", "optionalField", "(", *_written(tokens[at + 1 : end]), ")"]
            at = end + 1
        elif word in _NAMESPACES and opened[1:2] == ["."] and opened[3:] == ["("] and out[-1:] != ["."]:
            out.append(f"{word}_{opened[2]}")
            at += 3
        else:
            out.append(_OWN.get(word, word) if follows == ["("] else word)
            at += 1
    return out


def _through(tokens: Sequence[str], at: int) -> list[str]:
    """The replacement of the macro at `at` if it has two variables or is sortBy; empty otherwise."""
    macro, arguments = tokens[at + 1], _arguments(tokens[at + 3 : _end(tokens, at + 2)])
    if macro == "sortBy" and len(arguments) == _ONE:
        name, key = arguments
        return [".", "map", "(", *name, ",", "[", *_written(key), ",", *name, "]", ")", ".", "sortedBy", "(", ")"]
    if macro not in _OF_PAIRS or len(arguments) not in (_TWO, _TWO + macro.startswith("transform")):
        return []
    first, second, *filters, value = arguments

    def inside(wanted: str, what: Sequence[str]) -> list[str]:
        found = ["[", "pair", "[", "1", "]", "]", ".", wanted, "(", *second, ",", *_written(what), ")"]
        if wanted == "map":
            found += ["[", "0", "]"]
        found = ["[", "pair", "[", "0", "]", "]", ".", wanted, "(", *first, ",", *found, ")"]
        return [*found, "[", "0", "]"] if wanted == "map" else found

    out = [".", "entries", "(", ")"]
    for each in filters:
        out += [".", "filter", "(", "pair", ",", *inside("exists", each), ")"]
    if macro == "transformList":
        return [*out, ".", "map", "(", "pair", ",", *inside("map", value), ")"]
    if macro == "transformMap":
        made = ["[", "pair", "[", "0", "]", ",", *inside("map", value), "]"]
        return [*out, ".", "map", "(", "pair", ",", *made, ")", ".", "mapOf", "(", ")"]
    return [*out, ".", _OF_PAIRS[macro], "(", "pair", ",", *inside("all" if macro == "all" else "exists", value), ")"]


def _end(tokens: Sequence[str], at: int) -> int:
    """The index of the bracket that closes the one at `at`; the number of tokens if none does."""
    open_: list[str] = []
    for place in range(at, len(tokens)):
        if tokens[place] in _CLOSING:
            open_.append(_CLOSING[tokens[place]])
        elif open_ and tokens[place] == open_[-1]:
            open_.pop()
            if not open_:
                return place
    return len(tokens)


def _arguments(tokens: Sequence[str], number: int | None = None) -> list[list[str]]:
    """The arguments between brackets. With a `number`, exactly that many: missing ones are empty."""
    found: list[list[str]] = [[]]
    at = 0
    while at < len(tokens):
        end = _end(tokens, at) if tokens[at] in _CLOSING else at
        if tokens[at] == ",":
            found.append([])
        else:
            found[-1] += tokens[at : end + 1]
        at = end + 1
    return found if number is None else (found + [[]] * number)[:number]
