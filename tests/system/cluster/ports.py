# SPDX-License-Identifier: Apache-2.0
"""Blocks of TCP ports, each for one cluster at a time.

They lie below the range from which the kernel picks ports for outgoing connections. An abstract
Unix socket's name claims a block: it is as wide as the ports are (a network namespace), and it is
gone with the process that holds it.
"""

import random
import socket

FIRST, LAST, BLOCK = 12000, 28000, 64


def _free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True


def claim(count):
    """(claim to close when done, first port of so many)"""
    bases = list(range(FIRST, LAST, BLOCK))
    assert count <= BLOCK, f"{count} ports do not fit into a block of {BLOCK}"
    random.shuffle(bases)
    for base in bases:
        held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            held.bind(f"\0reknit-test-cluster-ports-{base}")
        except OSError:
            held.close()
            continue
        if all(_free(port) for port in range(base, base + count)):
            return held, base
        held.close()
    raise RuntimeError(f"no {count} free ports between {FIRST} and {LAST}")
