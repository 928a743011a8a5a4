"""The asyncio shell around the pure core: inbox, engine, executor, and what tells people how they are doing."""
