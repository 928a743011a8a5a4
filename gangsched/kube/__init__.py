"""The API server, as the rest of gangsched sees it: objects become values of the core, and effects become writes.

The rooms, from the bottom layer up; each imports only itself and rooms earlier in this list. `wire` has the objects as
they are sent. `client` has the session and everything that is the same for all kinds of objects. `cel` evaluates the
selectors of devices. `terms` reads what a pod, or a pod template, asks of nodes. `dialects` and `workloads` read how
pods declare their group, and which workload made them. `foreign` watches objects of other systems, which may be absent.
`reading` converts whole objects of Kubernetes to values of the core. `writing` sends effects, one module for each kind
of write.

Law: no module directly here. Nothing here decides for a gang; the machine of the core is not imported.
"""
