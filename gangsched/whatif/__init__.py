"""What would happen: the scheduler's own decisions about clusters and workloads that are only described.

`world` is a cluster built from manifests and `simulation` what the core decides about it; `decisions` offers the same
to Python programs. `traces` has arrivals and run times, `trace_replay` plays them on a simulated clock, `baselines`
plays them by other rules, `measures` computes the results, and `plots` draws them. `subprocess_worker` is the process
that answers the page's questions.
"""
