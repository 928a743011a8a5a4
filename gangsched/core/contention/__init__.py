"""Who leaves for whom when there is not room for all: units, searches for victims, and open plans.

A plan is complete before anything is evicted: `searching` finds places for a whole group, and the units (`units`) that
must leave for it; `plans` reserves the places, has it written who leaves, has them evicted, and ends.

Law: it adds no ledger, no retries and no way to be durable of its own. Places are reserved claims of the ledger,
members are evicted and marks are written by their own gangs (`core.gang.preempted`), and the group's reservation stands
in its status like any other. Nothing but `state` and the modules above it imports this room.
"""
