"""Every decision of gangsched, behind one door: `machine.Machine.handle(events, now) -> effects`.

The rooms, from the ground up; each imports only itself and rooms above it in this list, and says its law where it
begins. `objects` are values that everybody speaks of. `constraints` say which nodes take a pod. `cluster` is what is
there and what of it is spoken for. `planning` finds places on a snapshot of that. `gang` is one gang's life. `queueing`
knows who waits and who is next. `status` is what people are told. `autoscaling` says what new nodes must bring. `cycle`
is one scheduling cycle, `containment` parks a gang whose logic fails, `intake` applies events, `upkeep` brings gangs up
to date in each call, `machine` is the door.

Nothing here does I/O, reads a clock, depends on chance or logs.
"""
