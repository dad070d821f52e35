# SPDX-License-Identifier: Apache-2.0
"""A file system that does not answer: mounted, and whoever asks it how full it is sleeps in the kernel,
uninterruptibly, until it is let go."""

import ctypes
import os
import struct
import threading

FUSE_INIT, FUSE_STATFS = 26, 17
IN_HEADER, OUT_HEADER = struct.Struct("=IIQQIIII"), struct.Struct("=IiQ")
MNT_DETACH = 2

libc = ctypes.CDLL(None, use_errno=True)


def missing():
    """Why that cannot be had here; None when it can."""
    if os.geteuid() != 0:
        return "mounting needs root"
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as e:
        return f"no FUSE here: {e.strerror}"
    return None


class StuckMount:
    """with StuckMount(folder) as m: ...; m.asked is set once somebody sleeps there."""

    def __init__(self, folder):
        self.folder, self.asked = folder, threading.Event()

    def __enter__(self):
        self.fd = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0"
        if libc.mount(b"stuck", str(self.folder).encode(), b"fuse.stuck", 0, options.encode()) < 0:
            raise OSError(ctypes.get_errno(), "mount")
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        """Unmounting ends the connection, and with it everybody's wait."""
        libc.umount2(str(self.folder).encode(), 1)  # MNT_FORCE: aborts what waits
        libc.umount2(str(self.folder).encode(), MNT_DETACH)
        os.close(self.fd)
        self.thread.join(10)

    def _serve(self):
        while True:
            try:
                request = os.read(self.fd, 1 << 17)
            except OSError:
                return
            _, opcode, unique, *_ = IN_HEADER.unpack_from(request)
            if opcode == FUSE_INIT:
                body = struct.pack("=IIIIHHIIHHI7I", 7, 31, 65536, 0, 12, 10, 65536, 1, 0, 0, 0, *([0] * 7))
                os.write(self.fd, OUT_HEADER.pack(OUT_HEADER.size + len(body), 0, unique) + body)
            elif opcode == FUSE_STATFS:
                self.asked.set()
