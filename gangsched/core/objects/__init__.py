"""Values that every room uses: pods, nodes, PodGroups, events, effects, reasons, settings.

Law: values are immutable, and have no logic beyond what follows from the value itself.
"""
