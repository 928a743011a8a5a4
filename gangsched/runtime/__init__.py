"""The asyncio shell around the pure core: inbox, engine, executor, metrics, probes and logs."""
