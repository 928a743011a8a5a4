"""aiohttp's own TLS contexts trust nobody, and all others are as they would be."""

from __future__ import annotations

import subprocess
import sys

import pytest

_TRUSTED = """
import ssl
before = len(ssl.create_default_context().get_ca_certs())
import gangsched.app
from aiohttp import connector
assert connector._SSL_CONTEXT_VERIFIED.get_ca_certs() == []
assert len(ssl.create_default_context().get_ca_certs()) == before
assert "set_default_verify_paths" not in ssl.SSLContext.__dict__
"""


@pytest.mark.slow
def test_the_operator_starts_without_loading_the_systems_authorities_for_aiohttp() -> None:
    subprocess.run([sys.executable, "-c", _TRUSTED], check=True)
