"""The kopf operator in gangsched: it reconciles what is not urgent. No other package imports kopf.

`handlers` are the handlers, written as kopf's users expect them, `kopf_settings` kopf's settings, and `memo` what the
handlers share and may do to the rest of gangsched. `finished` decides, without I/O, when a finished PodGroup is due to
be deleted. `kopf_thread` runs kopf beside the scheduler and restarts it whenever it ends.

Law: kopf writes to no object, neither finalizers nor annotations. Handlers post facts to the inbox of the scheduler,
which decides and writes; so kopf may end at any time without harm.
"""
