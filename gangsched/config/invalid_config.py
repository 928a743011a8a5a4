"""The error of a configuration that cannot be used."""

from __future__ import annotations


class InvalidConfig(ValueError):  # noqa: N818 - what it names is the file, as the person who wrote it sees it
    """The configuration cannot be used; the message says which file, which key and what to do."""
