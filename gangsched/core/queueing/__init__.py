"""Who waits, in which order, and who is tried next: order, FIFO lanes, parking and waking, admission, deadlines.

Law: the only room that knows who waits. A parked gang costs nothing until something names it that could help.
"""
