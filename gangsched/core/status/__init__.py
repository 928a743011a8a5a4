"""What users read, and when it is written: conditions, messages, Events, the PodGroup's status.

Law: it compares the desired status with the last one written, and adds no state.
"""
