"""What a machine has observed, as people look at it: for `gangsched list`, `top` and the page.

Only what the API server shows counts: the statuses that were written, the nodes of pods. What a machine has decided and
nobody has carried out is left out, so that a machine on a copy of the cluster and the operator's own show the same.
`groups` are the gangs, `nodes` what fills each node, `timeline` says what became of one gang when, and `sight` is all
of it at once.
"""
