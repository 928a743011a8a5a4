"""What `helm test` runs in the cluster: every replica behind HOST:PORT is ready, and exactly one of them leads."""

import re
import socket
import sys
import time
import urllib.request

WAIT_S = 60
"""A replica that has just been started lists the cluster first, and a Lease that was lost expires after 15 s."""


def look(host: str, port: int) -> str:
    """What is wrong with the replicas now, empty if nothing is."""
    found = sorted({each[4][0] for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)})
    leaders = 0
    for address in found:
        base = f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
        urllib.request.urlopen(f"{base}/readyz", timeout=5).close()
        with urllib.request.urlopen(f"{base}/metrics", timeout=5) as answer:
            leaders += bool(re.search(r"^gangsched_leader 1", answer.read().decode(), re.MULTILINE))
    print(f"{len(found)} ready: {', '.join(found)}; {leaders} of them leads")
    return "" if leaders == 1 else f"{leaders} replicas lead, and it must be one: see the operator's log."


def main() -> int:
    host, _, port = sys.argv[1].rpartition(":")
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            wrong = look(host, int(port))
        except OSError as error:
            wrong = f"{host}:{port}: {error}: see the operator's log."
        if not wrong:
            return 0
        if time.monotonic() > deadline:
            print(wrong, file=sys.stderr)
            return 1
        time.sleep(2)


if __name__ == "__main__":
    sys.exit(main())
