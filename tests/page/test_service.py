"""The page as served by the operator: its address is in the log, and the page is reachable there."""

from __future__ import annotations

import asyncio

from gangsched.config.settings import Settings
from gangsched.core.machine import Machine
from gangsched.core.objects.policy import Policy
from gangsched.page.service import Service


async def test_an_address_that_nobody_has_used_is_logged_again(monkeypatch, caplog):
    monkeypatch.setattr("gangsched.page.service._RELOG_S", 0.05)
    caplog.set_level("INFO")
    machine = Machine(Policy())
    settings = Settings.model_validate({"page": {"enabled": True, "port": 0}})
    service = Service(
        settings, machine=lambda: machine, facts=list, now=lambda: 1.0, ready=lambda: True, decides=lambda: True
    )
    await service.start()
    await asyncio.sleep(0.2)
    await service.close()
    told = [record.open for record in caplog.records]
    assert len(told) > 1
    assert len(set(told)) == 1
    await asyncio.sleep(0.1)
    assert len(caplog.records) == len(told), "no page is served any more"
