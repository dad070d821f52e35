#!/usr/bin/python3 -SE
# SPDX-License-Identifier: Apache-2.0
"""One rank of trainer.py's job as srun starts it: rank and node from Slurm's environment, the other
ranks by TCP. usage: srun slurm_trainer.py --dir DIR

DIR/faults.json says what goes wrong: a list of
  {"rank": 3 | "node": "n5", "step": 20, "attempt": 0, "do": "raise", "text": "CUDA error: ..."}
Without "attempt" (the restart count) it happens in each. Step 0 is before the ranks have met. "do":
  raise   RuntimeError of that text         import  a module is missing
  exit    with status "status" at once      hang    sleeps and answers nobody
  kill    dies of signal "signal"           print   only says "text", and goes on
DIR/attempts has a JSON line for each start of a rank, DIR/lives/ATTEMPT-RANK until when it lived,
DIR/died the time of each fault that ends one, DIR/violations what must never happen.
"""

import argparse
import json
import os
import pathlib
import socket
import sys
import threading
import time
import traceback

from trainer import Place

PATIENCE = 60
BEAT = 0.1


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--save-every", type=int, default=5)
    parser.add_argument("--step-ms", type=float, default=20)
    parser.add_argument("--lost", choices=("raise", "hang"), default="raise",
                        help="what a rank does that has lost another")
    return parser.parse_args()


class Rank:
    def __init__(self, args):
        env = os.environ
        self.args, self.place = args, Place(args.dir)
        self.number, self.count = int(env["SLURM_PROCID"]), int(env["SLURM_NTASKS"])
        self.node, self.attempt = env["SLURMD_NODENAME"], int(env.get("SLURM_RESTART_COUNT", 0))
        self.job = env["SLURM_JOB_ID"]
        env["RANK"], env["WORLD_SIZE"] = str(self.number), str(self.count)
        self.peers = []
        try:
            self.faults = json.loads((args.dir / "faults.json").read_text())
        except FileNotFoundError:
            self.faults = []

    def live(self):
        """One that is killed cannot say when: so it says all the time that it lives, by the clock
        that no one sets."""
        lives = self.args.dir / "lives"
        lives.mkdir(exist_ok=True)
        fd = os.open(lives / f"{self.attempt}-{self.number}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)

        def beat():
            while True:
                os.pwrite(fd, f"{time.monotonic():.3f}".encode(), 0)
                time.sleep(BEAT)

        threading.Thread(target=beat, daemon=True).start()

    def meet_all(self):
        """Rank 0 listens and says where in a file of this very attempt; the others come."""
        at = self.args.dir / f"meet-{self.job}-{self.attempt}"
        if self.number == 0:
            with socket.create_server(("127.0.0.1", 0), backlog=self.count) as listener:
                listener.settimeout(PATIENCE)
                new = at.with_suffix(".new")
                new.write_text(str(listener.getsockname()[1]))
                new.rename(at)
                self.peers = [listener.accept()[0] for _ in range(self.count - 1)]
            for peer in self.peers:
                peer.settimeout(None)
            return
        deadline = time.monotonic() + PATIENCE
        while not at.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        self.peers = [socket.create_connection(("127.0.0.1", int(at.read_text())))]

    def barrier(self):
        try:
            if self.number:
                self.peers[0].sendall(b"x")
            for peer in self.peers:
                if not peer.recv(1):
                    raise ConnectionResetError
            if self.number == 0:
                for peer in self.peers:
                    peer.sendall(b"x")
        except ConnectionError:
            if self.args.lost == "hang":
                time.sleep(100000)
            raise RuntimeError("[../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection "
                               "closed by peer [127.0.0.1]:29500") from None

    def suffer(self, step):
        for fault in self.faults:
            if (fault["step"] == step and fault.get("rank", self.number) == self.number
                    and fault.get("node", self.node) == self.node
                    and fault.get("attempt", self.attempt) == self.attempt):
                self.do(fault)

    def do(self, fault):
        what = fault["do"]
        if what in ("raise", "exit", "kill"):
            self.place.note("died", str(time.time()))
        if what == "raise":
            raise RuntimeError(fault["text"])
        if what == "import":
            __import__(fault.get("text", "flash_attn_of_another_world"))
        elif what == "exit":
            sys.stdout.flush()
            os._exit(fault["status"])
        elif what == "hang":
            time.sleep(100000)
        elif what == "kill":
            os.kill(os.getpid(), fault["signal"])
        elif what == "print":
            print(fault["text"], flush=True)
        else:
            raise ValueError(what)

    def train(self):
        self.place.note("attempts", json.dumps({
            "attempt": self.attempt, "rank": self.number, "node": self.node, "pid": os.getpid(),
            "from": self.place.load(), "at": time.monotonic()}))
        self.live()
        self.suffer(0)
        self.place.take(f"rank{self.number}")
        self.meet_all()
        step = self.place.load()
        if self.number == 0 and step:
            print(f"resuming from checkpoint {self.args.dir}/checkpoint at step {step}", flush=True)
        self.barrier()  # nobody saves before everybody has loaded
        while step < self.args.steps:
            step += 1
            time.sleep(self.args.step_ms / 1000)
            self.suffer(step)
            self.barrier()
            if self.number == 0:
                print(f"step {step}/{self.args.steps} | loss {10 / (step + 9):.4f}", flush=True)
                if step % self.args.save_every == 0:
                    self.place.save(step)

    def run(self):
        try:
            self.train()
        except Exception:
            # In one write: of several, a step that Slurm ends by force may lose all but the first.
            sys.stderr.write("".join(f"[rank{self.number}]: {line}\n"
                                     for line in traceback.format_exc().splitlines()))
            sys.stderr.flush()
            return 1
        return 0


if __name__ == "__main__":
    sys.exit(Rank(arguments()).run())
