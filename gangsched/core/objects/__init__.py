"""Values that every room uses: pods, nodes, PodGroups, events, effects, reasons, settings.

Law: immutable, and without logic beyond what a value says of itself.
"""
