"""One gang's life: its run, its clock, its bindings, places and rollback.

Law: it decides for one gang at a time. Which nodes a quorum gets is not its business: it says what the gang wants of a
scheduling cycle.
"""
