"""The writes, one module for each kind. Each returns a classified `WriteResult`.

Law: no function raises for a failure of the server or the network. Each write is sent within a second or never, and
carries the UID of the object for which it was decided.
"""
