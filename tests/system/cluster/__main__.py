# SPDX-License-Identifier: Apache-2.0
"""usage: python3 -m cluster [NODES [PROGRAMS]]    (`make cluster`)

Leaves a test cluster running until Ctrl-C, and says how to use it; with a folder of PROGRAMS,
reknitd and all that belongs to it run there too.
"""

import json
import pathlib
import shutil
import signal
import sys

from . import TRAINER, Cluster, await_true, missing

PROGRAMS = ("reknitd", "reknit-slurm", "reknit-reader", "reknit-spawner", "reknit-seal", "reknit-agent", "reknit-post")

TEXT = """
A Slurm cluster of {count} nodes runs until you press Ctrl-C here. In another shell, as root:

  export SLURM_CONF={conf}
  sinfo
  cd {work}
  srun -N4 bash -c 'echo rank $SLURM_PROCID on $SLURMD_NODENAME'

A user's job that trains (steps, checkpoints; --help tells more), and what can happen to it:

  runuser -u nobody -- sbatch -N4 -n4 --open-mode=append -o train.out --wrap 'srun -K {trainer} --dir {work}/train --steps 10000'
  tail -F train.out
  scontrol update nodename=n2 state=down reason=test     # resume brings it back
  scontrol requeue JOBID

The daemons' logs are in {dir}/log.
"""

WITH_REKNIT = """
Reknit runs on it and acts for every job of partition main: reknitd, the spawner, the plugin, and an agent on each
node. Logs are read as the owners of jobs, as everywhere; those of root's jobs are not.

  export REKNIT_SOCKET={folder}/reknitd.sock PATH=$PATH:{programs}
  pkill -9 -f 'slurm_trainer.*{work}' -n                 # a rank dies: the job goes on from its checkpoint
  reknit jobs                                            # what it knows
  reknit explain JOBID                                   # what was seen, what was decided, and why
  reknit events                                          # as it happens
  reknit incidents
  reknit doctor --config {folder}/reknitd.yaml
  reknit replay {folder}/state/journal.db                # decides everything once more, and compares
  tail -F {dir}/log/reknitd.out                          # what it says itself
"""


def copy_for_everybody(paths, folder):
    """Where the owners of jobs may read them, wherever the build is."""
    folder.mkdir()
    for path in paths:
        shutil.copy2(path, folder)
    return folder


def start_reknit(cluster, programs):
    """Where all that is its own lies."""
    folder = cluster.dir / "reknit"
    folder.mkdir()
    config, spawner = folder / "reknitd.yaml", folder / "spawner.sock"
    programs = copy_for_everybody([programs / name for name in PROGRAMS], folder / "bin")
    config.write_text(json.dumps({  # which is YAML too
        "mode": "act", "opt_in": True, "state_dir": str(folder / "state"), "spawner": str(spawner),
        "api": {"socket": str(folder / "reknitd.sock")},
        "agents": {"listen": cluster.agents_address, "munge_socket": str(cluster.munge_socket)},
    }))
    cluster.start_daemon("spawner", [programs / "reknit-spawner", "--socket", spawner, "--user", "root",
                                     "--slurm-user", "root", "--slurm-conf", cluster.conf])
    await_true(lambda: f"the spawner's socket: {cluster.log('spawner')}", spawner.exists, poll=0.02)
    cluster.start_daemon("reknitd", [programs / "reknitd", "--config", config, "--drop-ins", folder / "none"])
    cluster.start_agents(programs / "reknit-agent")
    return folder


def main():
    reason = missing()
    if reason:
        sys.exit(f"no cluster: {reason}")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    programs = pathlib.Path(sys.argv[2]).absolute() if len(sys.argv) > 2 else None
    plugin = programs / "spank_reknit.so" if programs else None
    plugstack = Cluster.plugin(plugin) if plugin and plugin.exists() else ""
    with Cluster(nodes=int(sys.argv[1]) if len(sys.argv) > 1 else 16, plugstack=plugstack) as cluster:
        trainer = copy_for_everybody([TRAINER, TRAINER.with_name("trainer.py")], cluster.dir / "trainer") / TRAINER.name
        print(TEXT.format(count=len(cluster.nodes), conf=cluster.conf, work=cluster.work,
                          dir=cluster.dir, trainer=trainer), flush=True)
        if programs:
            folder = start_reknit(cluster, programs)
            print(WITH_REKNIT.format(work=cluster.work, dir=cluster.dir, programs=programs, folder=folder), flush=True)
        while True:
            signal.pause()


if __name__ == "__main__":
    main()
