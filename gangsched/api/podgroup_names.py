"""The names under which the API server serves PodGroups.

Law: imports nothing.
"""

GROUP = "gangsched.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "PodGroup"
PLURAL = "podgroups"
NAME = f"{PLURAL}.{GROUP}"
PATH = f"/apis/{API_VERSION}/{PLURAL}"
PHASE = "status.phase"
"""The field by which a list or watch of PodGroups may be limited."""
