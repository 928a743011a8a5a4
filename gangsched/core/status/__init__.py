"""What users read, and when it is written: conditions, messages, Events, the PodGroup's status.

Law: it compares the status that should be written with the last one, and adds no state.
"""
