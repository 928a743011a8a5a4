"""What would happen: the scheduler's own decisions about clusters and workloads that are only described.

`trace` reads arrivals and run times, `replay` plays them on a simulated clock, `measures` says what came of it, and
`plots` draws it.
"""
