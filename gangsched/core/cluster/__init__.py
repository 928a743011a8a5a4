"""The state of the cluster: nodes, pods, claims, topology domains, and nodes that refuse pods.

Law: one ledger of claims is the only writer of the data derived from them; `validate` rebuilds every index and reports
differences.
"""
