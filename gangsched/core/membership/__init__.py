"""Which pods and objects form which gang, and what an event changes about it.

Law: it knows all gangs and which of them an event concerns. What an event means for a gang is decided in `gang`, one
gang at a time.
"""
