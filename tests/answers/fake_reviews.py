"""An API server with some tokens and rights, for tests of the answers' server."""

from __future__ import annotations

import base64
import json
from collections import Counter
from typing import Any

from gangsched.kube.client.errors import ApiUnreachable
from gangsched.kube.client.session import Response

FAR = 4_000_000_000


def token(account: str, audience: object = "gangsched", exp: float = FAR) -> str:
    """A token in the form of a JWT; its signature is its account's name."""
    claims = json.dumps({"aud": audience, "exp": exp, "sub": account}).encode()
    return f"e30.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.{account}"


class FakeReviews:
    """`accounts` have tokens; `rights` are (account, verb, resource, namespace, name), an empty name is any."""

    def __init__(self, *accounts: str, rights: set[tuple[str, ...]] | None = None) -> None:
        self.accounts = set(accounts)
        self.rights = rights or set()
        self.audiences: list[str] | None = ["gangsched"]
        self.asked: Counter[str] = Counter()
        self.status = 201
        self.unreachable = False

    async def request(self, method: str, path: str, *, body: bytes, **_: Any) -> Response:
        assert method == "POST"
        self.asked[path.rpartition("/")[2]] += 1
        if self.unreachable:
            raise ApiUnreachable("no")
        if self.status != 201:
            return Response(self.status, {}, b'{"kind": "Status", "message": "no"}')
        spec = json.loads(body)["spec"]
        status = self._token(spec) if path.endswith("tokenreviews") else self._access(spec)
        return Response(201, {}, json.dumps({"status": status}).encode())

    def _token(self, spec: dict[str, Any]) -> dict[str, Any]:
        account = spec["token"].rpartition(".")[2]
        if account not in self.accounts:
            return {"authenticated": False, "error": "unknown"}
        user = {"username": account, "uid": "u", "groups": ["g"], "extra": {"k": ["v"]}}
        return {"authenticated": True, "user": user, "audiences": self.audiences}

    def _access(self, spec: dict[str, Any]) -> dict[str, Any]:
        asked = spec["resourceAttributes"]
        assert (spec["groups"], spec["extra"]) == (["g"], {"k": ["v"]})
        where = (spec["user"], asked["verb"], asked["resource"], asked.get("namespace", ""))
        return {"allowed": (*where, "") in self.rights or (*where, asked.get("name", "")) in self.rights}
