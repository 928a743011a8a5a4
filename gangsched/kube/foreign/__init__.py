"""Objects of other systems, which may be absent, unreadable, or served in other versions while we watch.

Law: an absent or forbidden kind is no error, and ends no other watch.
"""
