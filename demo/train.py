#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A small language model, trained by several ranks with DistributedDataParallel on the CPU.

It learns to continue a text, character by character, and saves a checkpoint every few steps;
started again, it goes on from the last one. Nothing in here knows of reknit.

Two faults can be ordered, each of which strikes once in the life of the checkpoint folder:
  --oom RANK:STEP    the rank raises what PyTorch raises when a GPU is out of memory
  --stop RANK:STEP   the rank stops itself with SIGSTOP, as good as a process stuck in a driver
"""

import argparse
import os
import pathlib
import signal
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 32, 64, 4, 1, 8


class Model(nn.Module):
    def __init__(self, characters):
        super().__init__()
        self.token = nn.Embedding(characters, WIDTH)
        self.position = nn.Parameter(torch.zeros(CONTEXT, WIDTH))
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, LAYERS)
        self.head = nn.Linear(WIDTH, characters)
        future = torch.triu(torch.full((CONTEXT, CONTEXT), float("-inf")), diagonal=1)
        self.register_buffer("future", future)

    def forward(self, x):
        return self.head(self.layers(self.token(x) + self.position, mask=self.future))


def fault(text):
    rank, step = text.split(":")
    return int(rank), int(step)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--text", type=pathlib.Path, required=True, help="what to learn")
    parser.add_argument("--dir", type=pathlib.Path, required=True, help="where checkpoints go")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--save-every", type=int, default=10)
    parser.add_argument("--step-seconds", type=float, default=0.2,
                        help="a step takes at least so long, as one of a larger model would")
    parser.add_argument("--oom", type=fault, metavar="RANK:STEP")
    parser.add_argument("--stop", type=fault, metavar="RANK:STEP")
    return parser.parse_args()


def say(text):
    if dist.get_rank() == 0:
        print(text, flush=True)


def load(path, model, optimizer):
    """The step to go on from."""
    if not path.exists():
        return 0
    saved = torch.load(path)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    say(f"resuming from checkpoint {path} at step {saved['step']}")
    return saved["step"]


def save(path, step, model, optimizer):
    """Written beside and renamed: a checkpoint is whole or it is not there."""
    say(f"saving checkpoint at step {step} to {path}")
    if dist.get_rank() == 0:
        beside = path.with_suffix(".new")
        state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
        with open(beside, "wb") as f:
            torch.save(state, f)
            f.flush()
            os.fsync(f.fileno())
        beside.rename(path)
    dist.barrier()
    say(f"successfully saved checkpoint at step {step}")


def strikes_now(order, name, folder, step):
    """Whether this rank is to fail at this step, and has not done so in an earlier attempt."""
    if order != (dist.get_rank(), step):
        return False
    mark = folder / f"fault-{name}"
    if mark.exists():
        return False
    mark.touch()
    return True


def allocate_too_much():
    raise torch.cuda.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 2.50 GiB (GPU 2; 79.15 GiB total capacity; "
        "76.34 GiB already allocated; 1.12 GiB free; 77.41 GiB reserved in total by PyTorch) "
        "If reserved memory is >> allocated memory try setting max_split_size_mb to avoid "
        "fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
    )


def batch(data):
    starts = torch.randint(len(data) - CONTEXT - 1, (BATCH,))
    x = torch.stack([data[s : s + CONTEXT] for s in starts])
    y = torch.stack([data[s + 1 : s + CONTEXT + 1] for s in starts])
    return x, y


def train(args):
    text = args.text.read_text(encoding="utf-8")
    alphabet = sorted(set(text))
    index = {c: i for i, c in enumerate(alphabet)}
    data = torch.tensor([index[c] for c in text])

    torch.manual_seed(1)
    model = Model(len(alphabet))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    checkpoint = args.dir / "checkpoint.pt"
    first = load(checkpoint, model, optimizer)
    parallel = DistributedDataParallel(model)
    torch.manual_seed(1000 * first + dist.get_rank())

    for step in range(first + 1, args.steps + 1):
        began = time.monotonic()
        x, y = batch(data)
        loss = nn.functional.cross_entropy(parallel(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        if strikes_now(args.oom, "oom", args.dir, step):
            allocate_too_much()
        if strikes_now(args.stop, "stop", args.dir, step):
            os.kill(os.getpid(), signal.SIGSTOP)
        loss.backward()
        optimizer.step()
        time.sleep(max(0, args.step_seconds - (time.monotonic() - began)))
        ms = 1000 * (time.monotonic() - began)
        say(f"step {step}/{args.steps} | loss {loss.item():.4f} | {ms:.0f} ms")
        if step % args.save_every == 0 or step == args.steps:
            save(checkpoint, step, model, optimizer)
    say("training finished")


def main():
    args = arguments()
    args.dir.mkdir(parents=True, exist_ok=True)
    dist.init_process_group("gloo")
    say(f"{dist.get_world_size()} ranks, PyTorch {torch.__version__}")
    train(args)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
