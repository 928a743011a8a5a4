"""A plug-in of pytest for make versions: tests of what the version lacks must fail, and no other may be skipped."""

from __future__ import annotations

import pytest

from testbed import binaries
from tests.versions.stories import LACKS


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for lack in LACKS[binaries.version_of("kube-apiserver")].values():
        for item in items:
            if getattr(item, "originalname", "") in lack.tests or lack.fixture in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xfail(reason=lack.why, strict=True))
