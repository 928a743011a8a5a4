"""A page to look at: groups and nodes in a browser, read-only, on this machine's loopback alone.

`server` answers and guards, `board` holds what there is to see as `things`, and `static` is the page itself: plain
HTML, CSS and a script, which load nothing from elsewhere. `what_if` tries manifests in a process of its own. `service`
is the page as the operator serves it, and `lookout` looks at its machine; `gangsched dashboard` reads the cluster with
the caller's rights instead.
"""
