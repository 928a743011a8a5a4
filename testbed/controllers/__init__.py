"""The real workload controllers beside gangsched: `table` lists them, `build` builds them, `running` runs them.

`expected` lists the workloads that are played with them, `matrix` the results. CONTRIBUTING.md explains how to add one.
"""
