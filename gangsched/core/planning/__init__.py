"""Finds nodes for a quorum, or for members one by one, on a snapshot of the cluster.

Law: a pure what-if. It changes a snapshot and never the cluster, and stays within one budget of units. The result is a
placement, a refusal that says what is missing, or a note that the budget ran out first.
"""
