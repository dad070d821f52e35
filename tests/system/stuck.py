# SPDX-License-Identifier: Apache-2.0
"""A file system that answers one program no more: whoever opens a file of a folder is held in the
kernel (fanotify), as by a server of NFS that is gone."""

import ctypes
import os
import pathlib
import select
import struct
import threading

FAN_CLASS_CONTENT, FAN_CLOEXEC = 0x4, 0x1
FAN_MARK_ADD, FAN_OPEN_PERM, FAN_EVENT_ON_CHILD = 0x1, 0x10000, 0x8000000
FAN_ALLOW = 1
EVENT = struct.Struct("=IBBHQii")

libc = ctypes.CDLL(None, use_errno=True)


def missing():
    """Why that cannot be had here; None when it can."""
    fd = libc.fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, os.O_RDONLY)
    if fd < 0:
        return f"no fanotify here: {os.strerror(ctypes.get_errno())}"
    os.close(fd)
    return None


class Stuck:
    """with Stuck(folder, "reknit-reader") as fs: ... fs.release()"""

    def __init__(self, folder, program):
        self.folder, self.program, self.held = folder, program, []
        self.lock, self.released = threading.Lock(), False

    def __enter__(self):
        self.fd = libc.fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, os.O_RDONLY)
        if libc.fanotify_mark(self.fd, FAN_MARK_ADD, ctypes.c_uint64(FAN_OPEN_PERM | FAN_EVENT_ON_CHILD), -100,
                              str(self.folder).encode()) < 0:
            raise OSError(ctypes.get_errno(), "fanotify_mark")
        self.stop, self.wake = os.pipe()
        self.thread = threading.Thread(target=self._answer, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.release()
        os.close(self.wake)
        self.thread.join()
        os.close(self.fd)
        os.close(self.stop)

    def _is_held(self, pid):
        try:
            return pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == self.program
        except OSError:
            return False

    def _allow(self, fd):
        try:
            os.write(self.fd, struct.pack("=iI", fd, FAN_ALLOW))
        except OSError:
            pass  # it was killed meanwhile
        os.close(fd)

    def _answer(self):
        while True:
            ready, _, _ = select.select([self.fd, self.stop], [], [])
            if self.stop in ready:
                return
            data = os.read(self.fd, 4096)
            while data:
                length, *_, fd, pid = EVENT.unpack_from(data)
                data = data[length:]
                with self.lock:
                    if not self.released and self._is_held(pid):
                        self.held.append(fd)
                    else:
                        self._allow(fd)

    def release(self):
        with self.lock:
            self.released = True
            while self.held:
                self._allow(self.held.pop())
