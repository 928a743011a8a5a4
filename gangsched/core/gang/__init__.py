"""The life of one gang: its run, clock, bindings, reservations, placeholders and rollback.

Law: it decides for one gang at a time. It does not choose nodes for a quorum; it says what the gang wants from a
scheduling cycle.
"""
