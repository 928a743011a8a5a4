"""Numbers and times in sentences, and texts of strangers in them."""

from __future__ import annotations

from collections.abc import Sequence


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


def first_named(names: Sequence[str], most: int, number: int = 0) -> str:
    """The first names, at most so many, and how many more there are, `number` in all if that is larger."""
    left = max(number, len(names)) - most
    return ", ".join(names[:most]) + (f" and {left} more" if left > 0 else "")


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


def moment(seconds: float) -> str:
    """The time in the form of Kubernetes, such as `2026-01-31T12:00:00Z`; `seconds` are since 1970.

    The date is found as in H. Hinnant, "chrono-compatible low-level date algorithms" (2013), for years from March on.
    """
    days, second = divmod(int(seconds), 86_400)
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month, day = divmod(5 * of_year + 2, 153)
    in_next = month // 10
    date = f"{year + era * 400 + in_next:04}-{month + 3 - 12 * in_next:02}-{day // 5 + 1:02}"
    return f"{date}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
