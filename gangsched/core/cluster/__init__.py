"""What is there, and what of it is spoken for: nodes, pods, free amounts, topology domains, nodes that refuse pods.

Law: exact integers, and one account of every pod that counts on a node; `validate` finds what contradicts it.
"""
