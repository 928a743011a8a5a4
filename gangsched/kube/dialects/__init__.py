"""How a pod names its group: in gangsched's own labels and annotations, or in those of another scheduler.

Each row of the registry (gangsched/config/dialects.py) has a file of its name here, whose `dialect(row, settings)` says
how the pods are read and, where the system has one, the custom resource of the group's name (`Kind`). Neither is ever
written. docs/dialects.md says for users what each key means here.
"""
