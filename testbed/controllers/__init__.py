"""The real workload controllers beside gangsched: `table` names them, `build` builds them, `running` runs them.

`expected` says which workloads are played beside them, `matrix` what was seen. CONTRIBUTING.md tells how to add one.
"""
