"""A read-only page that shows groups and nodes in a browser, served only on this machine's loopback.

`listener` opens the port, `server` guards and answers requests, `board` holds the `things` to show, and `history` those
of the past. `static` is the page itself: plain HTML, CSS and modules of JavaScript, which load nothing from elsewhere.
`what_if` tries manifests in a separate process, which `child` describes. `service` runs the page in the operator, where
`machine_reader` reads the machine; `gangsched dashboard` reads the cluster with the caller's rights instead.
"""
