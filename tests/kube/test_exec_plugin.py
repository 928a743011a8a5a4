"""An exec plug-in that gives client certificates, at a server that asks for one."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from gangsched.kube.client import exec_plugin
from gangsched.kube.client.session import connect
from tests.kube.test_session import issuing, kubeconfig

PEM = serialization.Encoding.PEM
OLD, NEW = "old", "new"


class Authority:
    """A certificate authority; `issue` writes a certificate and its key to files and returns their texts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
        self.file = folder / "authority.crt"
        self.file.write_bytes(self._signed(self._name, self._key.public_key(), ca=True).public_bytes(PEM))

    def issue(self, name: str) -> tuple[str, str]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        certificate = self._signed(subject, key.public_key(), ca=False).public_bytes(PEM)
        form = serialization.PrivateFormat.PKCS8
        private = key.private_bytes(PEM, form, serialization.NoEncryption())
        (self._folder / f"{name}.crt").write_bytes(certificate)
        (self._folder / f"{name}.key").write_bytes(private)
        return certificate.decode(), private.decode()

    def _signed(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, ca: bool) -> x509.Certificate:
        now = datetime.now(UTC)
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))])
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(names, critical=False)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )


@asynccontextmanager
async def asking(folder: Path, authority: Authority, good: set[str], seen: list[str]) -> AsyncIterator[str]:
    """A server that accepts clients whose certificate has one of the `good` names; `seen` are those of all requests."""

    async def handle(request: web.Request) -> web.Response:
        assert request.transport is not None
        certificate = request.transport.get_extra_info("peercert")
        name = dict(each[0] for each in certificate["subject"])["commonName"]
        seen.append(name)
        return web.json_response({}, status=200 if name in good else 401)

    authority.issue("server")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.file))
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # our authority is as plain as those of clusters; Python 3.13
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    app = web.Application()
    app.router.add_get("/x", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_a_certificate_that_the_server_refuses_is_replaced_on_new_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: a plug-in that gives certificates was called once, and never again."""
    monkeypatch.setattr(exec_plugin, "LEAST_S", 0.0)
    authority = Authority(tmp_path)
    issued = [
        dict(zip(("clientCertificateData", "clientKeyData"), authority.issue(each), strict=True)) for each in (OLD, NEW)
    ]
    good, seen = {OLD}, list[str]()
    async with asking(tmp_path, authority, good, seen) as server:
        cluster = {"certificate-authority": str(authority.file)}
        user = {"exec": issuing(tmp_path, *issued)}
        session = await connect(kubeconfig=kubeconfig(tmp_path / "config", server=server, user=user, **cluster))
        beside = session.separate()
        for each in (session, beside):
            assert (await each.request("GET", "/x")).ok
        good.clear()
        good.add(NEW)
        assert [(await each.request("GET", "/x")).status for each in (session, beside)] == [200, 200]
        assert [each.status for each in await asyncio.gather(*[session.request("GET", "/x") for _ in range(3)])] == [
            200
        ] * 3
        await session.close()
    assert seen == [OLD, OLD, OLD, NEW, NEW, NEW, NEW, NEW]
    assert (tmp_path / "issued").read_text() == "2"
