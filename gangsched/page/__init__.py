"""A page to look at: groups and nodes in a browser, read-only, on this machine's loopback alone.

`server` answers and guards, `board` holds what there is to see, and `static` is the page itself: plain HTML, CSS and a
script, which load nothing from elsewhere.
"""
