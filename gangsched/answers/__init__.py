"""Answers to people who may not list the whole cluster, and so cannot find out themselves why a group waits.

`server` takes their requests, `gate` finds out who asks and what that person may know, `examiner` has a process of its
own, `worker`, decide on a copy of the cluster, by `messages`. `certificate` is the server's, made anew at each start;
`announcement` tells on the operator's own pod by which fingerprint to know it.
"""
