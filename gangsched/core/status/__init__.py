"""What people are told, and when: conditions, messages, Events, the PodGroup's status.

Law: it compares what should stand with what stands, and invents no state.
"""
