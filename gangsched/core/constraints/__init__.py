"""Decides which nodes take a pod: each filter plug-in of kube-scheduler is one file and one line of `registry`.

Law: a rule cites its source, evaluates all nodes at once, and knows neither gangs nor the cluster's cache.
"""
