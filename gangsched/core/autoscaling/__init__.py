"""What new nodes must bring for those who wait, and the Demand objects that say so.

Law: a leaf. Nothing but the machine imports it.
"""
