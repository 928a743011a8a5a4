"""What there is to take in the cluster: the amounts of nodes, volumes and devices, with what is taken of them.

Law: amounts are exact integers. Only the cluster's cache changes anything here; constraints and planning read it.
"""
