# SPDX-License-Identifier: Apache-2.0
"""What slurmstepd is to the agent: a process of root's of that name, and a task of a job below it. Its arguments:
job, restart, node, uid of the task, file of its output and, if it shall be another one, the task's command; it says the task's pid and that of a process of the job that
has left its parents."""

STEPD = """
import ctypes, os, sys, signal
ctypes.CDLL(None).prctl(15, b"slurmstepd", 0, 0, 0)
task = os.fork()
if task == 0:
    env = dict(zip(("SLURM_JOB_ID", "SLURM_RESTART_COUNT", "SLURMD_NODENAME"), sys.argv[1:4]), SLURM_PROCID="5", OUT=sys.argv[5])
    os.setgroups([]), os.setgid(int(sys.argv[4])), os.setuid(int(sys.argv[4]))
    # One process hides: it leaves its parents and has no environment.
    command = sys.argv[6:] or ["sleep", "1000"]
    os.execve("/bin/sh", ["sh", "-c", 'env -i sleep 1001 & echo $!; exec "$@" >"$OUT"', "sh", *command], env)
os.write(1, b"%d\\n" % task)  # at once: the shell writes there too
signal.pause()
"""
