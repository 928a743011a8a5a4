"""gangsched's own label and annotations."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from gangsched.config.dialects import GROUP_BY, DialectRow, Key
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import Declaration
from gangsched.kube.dialects.dialect import Dialect, Texts, quoted, sentence
from gangsched.kube.dialects.dialect_fields import honoured

_TEXTS = (honoured(GROUP_BY, "names the label of the pod whose value is the group's name"),)


class OwnDialect(Dialect):
    """Its keys can only mean this scheduler, so an empty name is an error.

    Instead of the group's name a pod may name the label that contains it, so that one template serves many groups.
    """

    @property
    def marks(self) -> tuple[Key, ...]:
        return (*self.row.group, GROUP_BY)

    def nameless_group(self, labels: Texts, annotations: Texts, *, pod: str, owner: str) -> str:  # noqa: ARG002 - a label names it
        label = annotations.get(GROUP_BY.name)
        return labels.get(label, "") if label else ""

    def parse(self, base: Declaration, texts: Mapping[Key, str]) -> Declaration | None:
        declaration = super().parse(base, texts)
        if declaration is None or GROUP_BY not in texts:
            return declaration
        return replace(declaration, keys=replace(declaration.keys, group=str(GROUP_BY)))

    def nameless(self, base: Declaration, texts: Mapping[Key, str]) -> Declaration | None:
        label = texts.get(GROUP_BY)
        if label is None:
            return replace(base, error=f"{sentence(self.row.group[0])} is empty: give it the group's name.")
        if not label:
            return replace(base, error=f"{sentence(GROUP_BY)} is empty: give it the key of a label of the pod.")
        wrong = f"{sentence(GROUP_BY)} is {quoted(label)}, but the pod has no such label with a value: "
        return replace(base, error=f"{wrong}add it to the pod template, or name another label.")


def dialect(row: DialectRow, _: Settings) -> Dialect:
    return OwnDialect(row=row, texts=_TEXTS)
