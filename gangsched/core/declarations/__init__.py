"""What a group asks for: its terms, read from everything that declares it, and what keeps it from being tried.

Law: it knows no gang. What declares a group comes in as values (its key, PodGroup and members), and terms come out.
"""
