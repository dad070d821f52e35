#!/usr/bin/python3 -SE
# SPDX-License-Identifier: Apache-2.0
"""A training job without the training: ranks as processes, steps, checkpoints, a lock per rank.

Rank 0 prints a line per step and saves a checkpoint every few; started again, the job goes on from
there. The ranks meet at every step, so that one that is stopped holds up all, and one that dies
takes the others along. What must never happen is noted in DIR/violations:
  * a rank runs while the same rank of another copy lives (an exclusive lock per rank)
  * the port of the last attempt is still taken
"""

import argparse
import fcntl
import os
import pathlib
import signal
import socket
import sys
import time


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", type=pathlib.Path, required=True)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--save-every", type=int, default=5)
    parser.add_argument("--step-ms", type=float, default=5)
    parser.add_argument("--port", type=int, default=0, help="a daemon of the job listens there")
    parser.add_argument("--fail-at", type=int, default=0, metavar="STEP", help="rank 1 raises there, once")
    parser.add_argument("--fail-every", type=int, default=0, metavar="N", help="... and N steps on")
    parser.add_argument("--fail-text", default="RuntimeError: something broke")
    parser.add_argument("--stop-at", type=int, default=0, metavar="STEP", help="rank 1 stops, once")
    parser.add_argument("--ignore-term", action="store_true")
    return parser.parse_args()


class Place:
    """The job's folder."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def note(self, name, text):
        fd = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(fd, (text + "\n").encode())
        os.close(fd)

    def take(self, name):
        """The lock of a rank, for the life of this process."""
        fd = os.open(self.folder / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.note("violations", f"{name} in process {os.getpid()} runs beside another copy")
            raise
        self.note("pids", str(os.getpid()))

    def load(self):
        try:
            return int((self.folder / "checkpoint").read_text())
        except FileNotFoundError:
            return 0

    def save(self, step):
        print(f"saving checkpoint at step {step} to {self.folder}/checkpoint", flush=True)
        new = self.folder / "checkpoint.new"
        new.write_text(str(step))
        new.rename(self.folder / "checkpoint")
        print(f"successfully saved checkpoint at step {step}", flush=True)

    def times(self, name):
        """How often this was called with that name, in all attempts."""
        self.note(name, "x")
        return len((self.folder / name).read_text().split())


def daemon(place, port):
    """Leaves the job's session and parents behind, and holds a port: what a restart must find free."""
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    place.take("daemon")
    listener = socket.socket()
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as e:
        place.note("violations", f"port {port}: {e}")
        os._exit(1)
    listener.listen()
    place.note("daemons", str(os.getpid()))
    while True:
        signal.pause()


def meet(peers):
    """Every rank waits here for every other."""
    for peer in peers:
        peer.sendall(b"x")
    for peer in peers:
        if not peer.recv(1):
            raise ConnectionResetError("Connection reset by peer")


def fails(args, step):
    return step == args.fail_at or (args.fail_every and step % args.fail_every == 7)


def rank(args, place, number, peers):
    os.environ["RANK"] = str(number)
    place.take(f"rank{number}")
    if args.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    step = place.load()
    if number == 0 and step:
        print(f"resuming from checkpoint {place.folder}/checkpoint at step {step}", flush=True)
    while step < args.steps:
        step += 1
        time.sleep(args.step_ms / 1000)
        if number == 1 and fails(args, step) and place.times(f"failed-{step}") == 1:
            raise RuntimeError(args.fail_text)
        if number == 1 and step == args.stop_at and place.times("stopped") == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        meet(peers)
        if number == 0:
            print(f"step {step}/{args.steps} | loss {10 / (step + 9):.4f}", flush=True)
            if step % args.save_every == 0:
                place.save(step)


def rank_process(args, place, number, peers):
    """Like torchrun's: an exec of its own, so that RANK stands in its environment."""
    status = 1
    try:
        rank(args, place, number, peers)
        status = 0
    except Exception as e:
        text = str(e) if str(e).startswith(("RuntimeError", "torch.")) else f"{type(e).__name__}: {e}"
        print(f"[rank{number}]: Traceback (most recent call last):", file=sys.stderr)
        print(f'[rank{number}]:   File "trainer.py", line 1, in rank', file=sys.stderr)
        print(f"[rank{number}]: {text}", file=sys.stderr, flush=True)
    finally:
        sys.stdout.flush()
        os._exit(status)


def wire(ranks):
    """A socket between rank 0 and each other rank."""
    peers = {number: [] for number in range(ranks)}
    for number in range(1, ranks):
        near, far = socket.socketpair()
        peers[0].append(near)
        peers[number].append(far)
    return peers


def launch(args, place):
    place.note("pids", str(os.getpid()))
    place.note("attempts", os.environ.get("REKNIT_ATTEMPT", "-"))
    if args.port:
        daemon(place, args.port)
    peers = wire(args.ranks)
    pids = []
    for number in range(args.ranks):
        pid = os.fork()
        if pid == 0:
            for other in peers:
                if other != number:
                    for peer in peers[other]:
                        peer.close()
            rank_process(args, place, number, peers[number])
        pids.append(pid)
    for all_peers in peers.values():
        for peer in all_peers:
            peer.close()
    status = 0
    while pids:
        pid, result = os.wait()
        pids.remove(pid)
        if result and not status:
            status = 1
            for other in pids:
                os.kill(other, signal.SIGTERM)
    return status


if __name__ == "__main__":
    parsed = arguments()
    sys.exit(launch(parsed, Place(parsed.dir)))
