"""The gangs that wait, and which is tried next: order, FIFO lanes, parking and waking, admission, deadlines.

Law: no other room knows which gangs wait. A parked gang costs nothing until something happens that could help it.
"""
