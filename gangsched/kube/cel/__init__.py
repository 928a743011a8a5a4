"""Device selectors in the Common Expression Language.

Law: imports nothing of gangsched but values of the core.
"""
