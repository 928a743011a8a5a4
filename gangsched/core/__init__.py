"""All decisions of gangsched, behind one entry point: `machine.Machine.handle(events, now) -> effects`.

The rooms, from the bottom layer up. Each imports only itself and rooms earlier in this list, and its docstring begins
with its rules (Law). `objects` are the values that all rooms use. `inventory` is what nodes, volumes and devices have
to offer. `constraints` decide which nodes take a pod. `cluster` holds what exists and what of it is reserved.
`planning` finds nodes on a snapshot of the cluster. `declarations` read what a group asks for. `gang` is the life cycle
of one gang. `membership` maps pods and objects to gangs, `queueing` decides which gangs wait and which is next, and
`starts` knows what started groups still need. `status` is what users read. `autoscaling` computes what new nodes must
provide, and `phases` writes the phases that other systems' controllers wait for. `containment` parks a gang whose logic
fails. `state` combines all of these. On top of it, `intake` applies events, `upkeep` reconciles gangs, and `cycle` runs
one scheduling cycle. `machine` is the entry point.

Nothing here does I/O, logs, reads a clock or uses randomness.
"""
