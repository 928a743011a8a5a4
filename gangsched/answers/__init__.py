"""Answers users who may not list the whole cluster, and so cannot find out themselves why a group waits.

`server` receives their requests, `gate` finds out who asks and what that user may know, and `examiner` has a separate
process, `worker`, decide on a copy of the cluster; `messages` is their protocol. `certificate` is the server's, created
at each start; `announcement` publishes its fingerprint on the operator's own pod. `service` is all of it together.
"""
