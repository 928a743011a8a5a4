"""The API server's key and certificate.

kube-apiserver would make an RSA key, whose signatures take a considerable part of its processor time in the integration
tests, because each operator, kubectl and plugin opens connections of its own.
"""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_GOOD_FOR = timedelta(days=365)
_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")


def write_certificate(certificate: Path, key: Path) -> None:
    """Write a new elliptic-curve key and its self-signed certificate for 127.0.0.1, which is its own authority."""
    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "testbed")])
    now = datetime.now(UTC)
    hosts = [x509.IPAddress(ipaddress.IPv4Address("127.0.0.1")), *map(x509.DNSName, _NAMES)]
    identifier = x509.SubjectKeyIdentifier.from_public_key(secret.public_key())
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _GOOD_FOR)
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(secret, hashes.SHA256())
    )
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key.touch(mode=0o600)
    # kube-apiserver does not read the public key of its service accounts from a private key in PKCS #8.
    traditional = serialization.PrivateFormat.TraditionalOpenSSL
    key.write_bytes(secret.private_bytes(serialization.Encoding.PEM, traditional, serialization.NoEncryption()))
