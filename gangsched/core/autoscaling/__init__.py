"""What new nodes must provide for waiting gangs, and the Demand objects that ask for it.

Law: a leaf. Only `state` imports it.
"""
