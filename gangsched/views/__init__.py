"""What a machine knows, as people look at it: values that outlive the machine's next step.

`groups` are the gangs and `nodes` what fills each node, `timeline` says what became of one gang when, and `sight` is
all of it at once. In these four only what the API server shows counts, so that a machine on a copy of the cluster and
the operator's own show the same. `findings` is the state of a group in the terms of its status. `diagnosis` finds out
why a group waits and what would help, which is then a value of `diagnosed`, named as far as somebody's `reach` goes;
`diagnosis_json` is the same for programs, and back. `nodegroups` says where members fit, `trial` decides on a copy.
Nothing here changes the machine that it is asked about.
"""
