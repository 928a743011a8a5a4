"""Every decision of gangsched, behind one door: `machine.Machine.handle(events, now) -> effects`.

The rooms, from the ground up; each imports only itself and rooms above it in this list, and states its law at its
beginning. `objects` are the values that all rooms use. `constraints` say which nodes take a pod. `cluster` is what is
there and what of it is reserved. `planning` finds places on a snapshot of that. `declarations` say what a group asks
for. `gang` is one gang's life. `membership` knows which pods and objects make which gang, `queueing` which gangs wait
and which is next. `status` is what users read. `autoscaling` says what new nodes must bring, and `phases` what other
systems' controllers wait for. `containment` parks a gang whose logic fails. `state` is all of this in one. On it
`intake` applies events, `upkeep` brings gangs up to date, and `cycle` runs one scheduling cycle. `machine` is the door.

Nothing here does I/O, reads a clock, depends on chance or logs.
"""
