"""What a pod or a pod template asks of nodes and of other pods, as values of the core.

Law: fields in, values out. Nothing here knows groups, dialects or workloads.
"""
