"""The real workload controllers beside gangsched: `table` names them, `build` builds them, `running` runs them.

A new controller is one row in `table` and one file in tests/workloads.
"""
