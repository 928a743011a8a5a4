"""The client of the API server: sessions, credentials, lists, watches, and what goes wrong with them.

Law: knows no kind of object but Lease. What differs between kinds comes in as a `Resource`.
"""
