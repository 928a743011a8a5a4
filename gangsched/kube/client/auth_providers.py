"""Tokens of kubeconfigs with an `auth-provider`, the predecessor of exec plug-ins, from the library kubernetes-asyncio.

The library knows the rules of OpenID Connect and of Google's program. It is an extra, imported when such a kubeconfig
is read, because its import takes 40 MB and 0.3 s (ADR 51).
"""

from __future__ import annotations

from typing import Any

from gangsched.kube.client.errors import NoCredentials
from gangsched.kube.client.exec_plugin import ExecCredentialStatus

EXTRA = "auth-providers"
_NAME = "x"


class AuthProvider:
    """An `auth-provider` of a user: `token` gives a token each time, refreshed if it has expired."""

    def __init__(self, provider: dict[str, Any], server: str) -> None:
        named = {"name": _NAME, "user": {"auth-provider": provider}}
        # The library puts refreshed tokens into this mapping, and finds them there the next time.
        self._kubeconfig = {
            "current-context": _NAME,
            "clusters": [{"name": _NAME, "cluster": {"server": server}}],
            "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
            "users": [named],
        }

    async def token(self) -> ExecCredentialStatus:
        """The current token.

        Raises:
            NoCredentials: the library is not installed, or the provider gives no token.
        """
        try:
            from kubernetes_asyncio.client import Configuration  # noqa: PLC0415 - see the module
            from kubernetes_asyncio.config import load_kube_config_from_dict  # noqa: PLC0415
        except ImportError as error:
            raise NoCredentials(
                "The kubeconfig has an auth-provider, which gangsched reads with an extra: install"
                f" gangsched[{EXTRA}], or use an exec plug-in such as kubelogin."
            ) from error
        configuration = Configuration()
        try:
            await load_kube_config_from_dict(self._kubeconfig, client_configuration=configuration)
            header = await configuration.get_api_key_with_prefix("BearerToken")
        except Exception as error:  # the library's, of the HTTP client and of what it reads
            raise NoCredentials(f"The auth-provider of the kubeconfig gives no token: {error}") from error
        return ExecCredentialStatus(token=(header or "").removeprefix("Bearer "))
