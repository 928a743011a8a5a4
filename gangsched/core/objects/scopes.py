"""Objects of the API by what names them."""

from __future__ import annotations

from msgspec import Struct


class ClusterScoped(Struct, frozen=True, gc=False):
    """An object that its name alone identifies among those of its kind."""

    name: str

    @property
    def key(self) -> tuple[str, str]:
        """The name, after an empty namespace."""
        return "", self.name


class Namespaced(Struct, frozen=True, gc=False):
    """An object that its namespace and name identify among those of its kind."""

    namespace: str
    name: str

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name
