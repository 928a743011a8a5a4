"""What a group asks for: its terms, resolved from everything that declares it, and what keeps it from being tried.

Law: it knows no gang. Everything that declares a group comes in as values (its key, PodGroup and members), and terms
come out.
"""
