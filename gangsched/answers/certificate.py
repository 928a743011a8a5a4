"""The key and certificate of the answers: created at each start, never on a disk, identified by their fingerprint."""

from __future__ import annotations

import hashlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_NAME = "gangsched"
_GOOD_FOR = timedelta(days=3650)
"""Clients check the fingerprint of the certificate, which changes with each start, and not its dates."""


@dataclass(frozen=True)
class Certificate:
    """A server's TLS, and the SHA-256 `fingerprint` of its certificate, in hexadecimal."""

    tls: ssl.SSLContext
    fingerprint: str


def make_certificate() -> Certificate:
    """A new key with a self-signed certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, _NAME)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _GOOD_FOR)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(_NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.minimum_version = ssl.TLSVersion.TLSv1_3
    with _as_file(pem) as path:
        tls.load_cert_chain(path)
    found = hashlib.sha256(certificate.public_bytes(serialization.Encoding.DER)).hexdigest()
    return Certificate(tls, found)


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """The path of a file with this content, in memory if the system can: Python's ssl reads keys only from files."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create(_NAME), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.NamedTemporaryFile(prefix="gangsched-") as other:
        other.write(content)
        other.flush()
        yield other.name
