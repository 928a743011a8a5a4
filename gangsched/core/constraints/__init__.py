"""Which nodes take a pod, by the rules of kube-scheduler's filter plug-ins.

Law: a rule cites its source, and knows neither gangs nor the cluster's cache.
"""
