"""Common mistakes and the messages that report them: `table.py` has the whole list."""
