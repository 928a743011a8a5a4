"""What a machine knows, as people look at it: values that outlive the machine's next step.

`findings` is the state of a group in the terms of its status. `diagnosis` finds out why a group waits and what would
help, which is then a value of `diagnosed`, named as far as somebody's `reach` goes;
`diagnosis_json` is the same for programs, and back. `nodegroups` says where members fit, `trial` decides on a copy.
Nothing here changes the machine that it is asked about.
"""
