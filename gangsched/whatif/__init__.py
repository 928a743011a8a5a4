"""What would happen: the scheduler's own decisions about clusters and workloads that are only described.

`world` is a cluster made of manifests and `simulation` what the core decides about it; `decisions` is the same for
Python programs. `trace` reads arrivals and run times, `replay` plays them on a simulated clock, `measures` says what
came of it, and `plots` draws it.
"""
