"""Numbers in sentences, and texts of strangers in them."""

from __future__ import annotations


def number_of(number: int, thing: str) -> str:
    """The number and the thing, in the singular or the plural."""
    return f"1 {thing}" if number == 1 else f"{number} {thing}s"


def number_is(number: int, thing: str) -> str:
    """As in "1 member is" and "3 members are"."""
    return f"{number_of(number, thing)} {'is' if number == 1 else 'are'}"


def counted(number: int, thing: str, one: str, many: str) -> str:
    """As in "1 pod has" and "3 pods have"."""
    return f"{number_of(number, thing)} {one if number == 1 else many}"


def number_of_all(number: int, total: int, thing: str, one: str = "", many: str = "") -> str:
    """As in "2 of 3 members", with the verb `one` or `many`; without the total if the number exceeds it."""
    head = "" if number > total else f"{number} of "
    verb = one if max(number, total) == 1 else many
    return f"{head}{number_of(max(number, total), thing)} {verb}".rstrip()


def number_is_of_all(number: int, total: int, thing: str) -> str:
    """As in "2 of 3 members are"."""
    return number_of_all(number, total, thing, "is", "are")


def shortened(text: str, longest: int) -> str:
    """The text, cut to this number of characters; then it ends with an ellipsis."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def escaped(text: str) -> str:
    """The text with every character escaped that is not printable: controls, separators of lines, bidi marks."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in text)


def printable(text: str, *, limit: int = 1000) -> str:
    """What a stranger has written, for a log line or a sentence: cut at `limit` characters and escaped."""
    return escaped(shortened(text, limit))
