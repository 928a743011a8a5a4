"""What is there, and what of it is spoken for: nodes, pods, claims, free amounts, topology domains, nodes that refuse.

Law: exact integers, and one ledger of claims, which alone changes what is derived of them; `validate` makes every index
anew and finds what differs.
"""
