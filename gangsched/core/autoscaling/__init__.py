"""What new nodes must bring for gangs that wait, and the Demand objects that say so.

Law: a leaf. Nothing but `state` imports it.
"""
