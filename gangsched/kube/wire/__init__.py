"""The objects that the API server sends, with only the fields that gangsched reads.

Unknown fields are skipped and null counts as absent, so nearly every field is optional. Decoding is the hot path of the
process, so the structs are exempt from garbage collection and have no unused fields. `storage_objects`,
`device_objects` and `disruption_objects` have the kinds of those topics; all others are here.

Law: imports nothing of gangsched but amounts.
"""

from gangsched.kube.wire.answers import *  # noqa: F403 - this package is one namespace for the modules' structs
from gangsched.kube.wire.cluster import *  # noqa: F403
from gangsched.kube.wire.pod_objects import *  # noqa: F403
from gangsched.kube.wire.shared_parts import *  # noqa: F403
