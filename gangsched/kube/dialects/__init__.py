"""How a pod declares its group: with gangsched's own labels and annotations, or with those of another scheduler.

Each row of the registry (gangsched/config/dialects.py) has a file with its name here. Its `dialect(row, settings)`
returns the parser for pods and, if the system has one, for the custom resource with the group's name (`Kind`).
gangsched writes to neither, except for the phase of Volcano's PodGroups (`kube.phases`). docs/dialects.md documents
each key for users.
"""
