"""Which nodes take a pod: each filter plug-in of kube-scheduler in one file, one line of `registry`, one interface.

Law: a rule cites its source, answers for all nodes at once, and knows neither gangs nor the cluster's cache.
"""
