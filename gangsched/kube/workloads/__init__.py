"""Controllers whose pods may be gangs though they name no group: what their pods carry, and what their objects say.

One file for each kind, or for several that are alike, by the rows of gangsched/config/workloads.py.
"""
