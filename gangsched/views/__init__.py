"""Views of a machine for people and programs: values that stay valid after the machine's next step.

`group_rows` shows the gangs, `member_rows` their members, `node_usage` each node with its `topology`, `timeline` the
stages of one gang, `activity` what it does in a word, and `cluster_overview` all of these at once. These use only what
the API server shows, so that a machine on a copy of the cluster and the operator's own give the same result.
`undeclared_phase` is the one home for the phase of a gang without a PodGroup. `findings` is the state of a group in the
terms of its status. `diagnosis` finds out why a group waits and what would help. Its result is a value of `diagnosed`,
without the names that the `reach` of the caller excludes; `diagnosis_json` encodes and decodes it. `nodegroups` says
where members fit, `decided_copy` decides on a copy, and `copied` passes one to another process. Nothing here changes
the machine that it reads.
"""
