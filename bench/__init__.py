"""Throughput of gangsched as a ratio to the bare API server, measured in the same run on this machine."""
