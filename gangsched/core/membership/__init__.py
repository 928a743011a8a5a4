"""Which pods and objects make which gang, and what an event changes of it.

Law: it knows all gangs and which of them an event concerns. What follows for a gang is decided in `gang`, one gang at a
time.
"""
