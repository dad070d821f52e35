# SPDX-License-Identifier: Apache-2.0
"""usage: python3 -m cluster [NODES]    (`make cluster`)

Leaves a test cluster running until Ctrl-C, and says how to use it.
"""

import signal
import sys

from . import TRAINER, Cluster, missing

TEXT = """
A Slurm cluster of {count} nodes runs until you press Ctrl-C here. In another shell, as root:

  export SLURM_CONF={conf}
  sinfo
  cd {work}
  srun -N4 bash -c 'echo rank $SLURM_PROCID on $SLURMD_NODENAME'

A job that trains (steps, checkpoints; --help tells more), and what can happen to it:

  sbatch -N4 -n4 --open-mode=append -o train.out --wrap 'srun -K {trainer} --dir {work}/train --steps 10000'
  tail -F train.out
  scontrol update nodename=n2 state=down reason=test     # resume brings it back
  scontrol requeue JOBID

The daemons' logs are in {dir}/log.
"""


def main():
    reason = missing()
    if reason:
        sys.exit(f"no cluster: {reason}")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    with Cluster(nodes=int(sys.argv[1]) if len(sys.argv) > 1 else 16) as cluster:
        print(TEXT.format(count=len(cluster.nodes), conf=cluster.conf, work=cluster.work,
                          dir=cluster.dir, trainer=TRAINER), flush=True)
        while True:
            signal.pause()


if __name__ == "__main__":
    main()
