"""What exists and what of it is in use: nodes, pods, claims, free amounts, topology domains, nodes that refuse pods.

Law: exact integers, and one ledger of claims, which alone changes what is derived from them; `validate` rebuilds every
index and reports differences.
"""
