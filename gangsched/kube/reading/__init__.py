"""Objects of Kubernetes as values of the core: pods, nodes, storage, devices; and how each kind is listed and watched.

Law: a conversion never raises for a field that it cannot read. The object waits, or counts as closed, with the reason.
"""
