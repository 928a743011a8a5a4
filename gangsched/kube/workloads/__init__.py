"""Controllers whose pods can form gangs without naming a group: how to recognise the pods and read the objects.

Each row of gangsched/config/workload_registry.py names its file here; similar kinds share one. The kinds of
the setting `workloads.custom` share `custom`.
"""
