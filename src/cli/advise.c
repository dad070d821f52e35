/* SPDX-License-Identifier: Apache-2.0 */

/* First how to start again, then what to look at or change. The second comes from a table: the
 * first row that fits the cause, the decisive line's signature and the words of the evidence. So
 * "out of memory" says whose limit it was, where the log tells. */

#include "cli/advise.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define STEPS_MAX     6
#define COMMAND_LEN   256
#define COMMAND_SHOWN 68 /* columns: a longer one that is not needed is left out */
#define LINES_BEFORE  30 /* of the log, shown above the decisive line */
#define JOB_ID_DIGITS 12

struct recipe {
    enum cause cause;
    const char *signature;        /* of the decisive line, "x.*" = its family, NULL = any */
    const char *words;            /* in a line of the evidence, NULL = any */
    const char *steps[STEPS_MAX]; /* "$ " begins a command */
};

#define SHARED_MEMORY                                                                              \
    {                                                                                              \
        "the processes of a node hand data over in /dev/shm, and it is too small or full. In a "   \
        "container it has 64 MiB unless it is made larger:",                                       \
            "$ docker run --shm-size=64g IMAGE   # or --ipc=host",                                 \
            "in Kubernetes: an emptyDir with medium: Memory, mounted at /dev/shm. Or use fewer "   \
            "data loader workers (num_workers) that hold fewer batches (prefetch_factor). How "    \
            "full it is:",                                                                         \
            "$ df -h /dev/shm",                                                                    \
    }

#define OWN_LIMIT                                                                                  \
    {                                                                                              \
        "the job's own limit was reached (its cgroup's), not the end of the node's memory. How "   \
        "much it was given and took:",                                                             \
            "$ sacct -j JOBID --format=JobID,ReqMem,MaxRSS,MaxRSSNode",                            \
            "ask for more, or use less (fewer data loader workers, less prefetched); 0 is all "    \
            "that the node has:",                                                                  \
            "$ sbatch --mem=0 JOBSCRIPT",                                                          \
    }

#define OFFLINE                                                                                    \
    "or run without it, for example with HF_HUB_OFFLINE=1 or WANDB_MODE=offline in the job's "     \
    "script"

/* clang-format off */
static const struct recipe recipes[] = {
    {CAUSE_HOST_OOM, "pt.worker_bus", NULL, SHARED_MEMORY},
    {CAUSE_USER_CONFIG, "pt.shared_memory", "Too many open files",
     {"every tensor that is handed over is an open file. Raise the limit in the job's script:",
      "$ ulimit -n 65536",
      "or call torch.multiprocessing.set_sharing_strategy('file_system')"}},
    {CAUSE_USER_CONFIG, "pt.shared_memory", NULL, SHARED_MEMORY},
    {CAUSE_USER_CONFIG, "nccl.shared_memory", NULL, SHARED_MEMORY},
    {CAUSE_HOST_OOM, "kubernetes.oom", NULL,
     {"the container reached its own limit (resources.limits.memory), not the node's. Raise it, or "
      "use less (fewer data loader workers). What was set and used:",
      "$ kubectl describe pod POD | grep -iE -A3 'last state|limits'",
      "$ kubectl top pod POD --containers"}},
    {CAUSE_HOST_OOM, "kubernetes.*", NULL,
     {"the node ran short of memory, and whoever used more than it had requested had to go. "
      "Request as much as the job takes (resources.requests.memory):",
      "$ kubectl describe node NODE | grep -A8 'Allocated resources'"}},
    {CAUSE_HOST_OOM, "ray.oom", NULL,
     {"Ray ended a worker because its node's memory was nearly full. Let fewer tasks run on a node "
      "at once (more num_cpus for each), or use less. What they take:",
      "$ ray memory --group-by NODE_ADDRESS --sort-by OBJECT_SIZE"}},
    {CAUSE_HOST_OOM, NULL, "Memory cgroup out of memory", OWN_LIMIT},
    {CAUSE_HOST_OOM, NULL, "CONSTRAINT_MEMCG", OWN_LIMIT},
    {CAUSE_HOST_OOM, "slurm.oom", NULL, OWN_LIMIT},
    {CAUSE_HOST_OOM, "batch.memory", NULL,
     {"the job's own limit was reached, not the end of the node's memory: ask for more in the job's "
      "script, or use less (fewer data loader workers, less prefetched)"}},
    {CAUSE_HOST_OOM, "kernel.*", NULL,
     {"the node itself ran out of memory, and all that runs on it counts. Who took it stands in its "
      "kernel's log:",
      "$ dmesg -T | grep -iE -A60 'invoked oom-killer' | less",
      "take the node alone, or use less (fewer data loader workers, less prefetched):",
      "$ sbatch --exclusive --mem=0 JOBSCRIPT"}},
    {CAUSE_HOST_OOM, "python.memory", NULL,
     {"an allocation was refused: by a limit of the process, or because nothing is left. On the "
      "node, in the job's own shell:",
      "$ ulimit -v; free -h",
      "use less (fewer data loader workers, less prefetched), or ask for more (#SBATCH --mem)"}},
    {CAUSE_HOST_OOM, NULL, NULL,
     {"something sent SIGKILL, most often the kernel for want of memory. Its log knows, on the node:",
      "$ dmesg -T | grep -iE 'oom-kill|out of memory'",
      "if so, ask for more (#SBATCH --mem), or use less (fewer data loader workers, less "
      "prefetched)"}},

    {CAUSE_GPU_OOM, "cuda.oom_context", NULL,
     {"not even the start of CUDA fitted: another process holds the GPU's memory. On the node:",
      "$ nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv"}},
    {CAUSE_GPU_OOM, "cuda.kv_cache", NULL,
     {"give the engine a larger share (gpu_memory_utilization), a shorter max_model_len, or more "
      "GPUs (tensor_parallel_size)"}},
    {CAUSE_GPU_OOM, "jax.*", NULL,
     {"make the step smaller: a lower batch size per device, rematerialisation (jax.checkpoint), or "
      "more sharding. JAX takes three quarters of each GPU at the start; if nobody else uses it, "
      "this in the job's script gives it more:",
      "$ export XLA_PYTHON_CLIENT_MEM_FRACTION=.95"}},
    {CAUSE_GPU_OOM, NULL, NULL,
     {"make the step smaller: a lower batch size per GPU (and more gradient accumulation), "
      "activation checkpointing, or more sharding. Where the message says that much is reserved but "
      "unallocated, this in the job's script may be enough:",
      "$ export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"}},

    {CAUSE_USER_CONFIG, "python.module_missing", NULL,
     {"the job runs in another environment than the one that has the module. Which one:",
      "$ srun -n1 python3 -c 'import sys; print(sys.executable, sys.path)'"}},
    {CAUSE_USER_CONFIG, "pt.address_in_use", NULL,
     {"another process has the port, often one left over from the last attempt. On the node:",
      "$ ss -ltnp | grep PORT",
      "end it, or let the launcher choose one: --rdzv-backend=c10d --rdzv-endpoint=HOST:0"}},
    {CAUSE_USER_CONFIG, "python.open_files", NULL,
     {"raise the limit in the job's script, or keep fewer files open:", "$ ulimit -n 65536"}},
    {CAUSE_USER_CONFIG, "external.credentials", NULL,
     {"renew the key or token that the job uses, and see that its environment has it"}},
    {CAUSE_USER_CONFIG, "slurm.rejected", NULL,
     {"ask for what the cluster has:", "$ sinfo -o '%P %l %D %c %m %G'"}},
    {CAUSE_USER_CONFIG, NULL, NULL,
     {"mend the job's script or configuration; the same start fails again"}},
    {CAUSE_USER_CODE, NULL, NULL, {"mend the program; the same start fails again"}},
    {CAUSE_NUMERICAL, NULL, NULL,
     {"go back to a checkpoint from before the rise, lower the learning rate, or skip the data that "
      "caused it"}},

    {CAUSE_STORAGE, "storage.full", NULL,
     {"make room, or write elsewhere. How full it is, and whether only of files:",
      "$ df -h FOLDER; df -i FOLDER"}},
    {CAUSE_STORAGE, "storage.quota", NULL,
     {"make room, or have the quota raised. What is used:",
      "$ quota -s; lfs quota -hu $USER FOLDER"}},
    {CAUSE_STORAGE, "checkpoint.corrupt", NULL,
     {"the checkpoint is damaged, and will be next time: put it aside and start from the one "
      "before it"}},
    {CAUSE_STORAGE, "storage.damaged_file", NULL,
     {"the file is damaged, and will be next time: fetch or make it anew, or leave it out"}},
    {CAUSE_STORAGE, NULL, NULL,
     {"see whether the file system answers, on this node and on another, and what the kernel says:",
      "$ timeout 10 ls FOLDER >/dev/null && echo answers; df -h FOLDER",
      "$ dmesg -T | grep -iE 'nfs|lustre|beegfs|gpfs|ceph|i/o error'"}},

    {CAUSE_EXTERNAL_SERVICE, "external.dns", NULL,
     {"see whether a compute node finds the name:", "$ srun -n1 getent hosts NAME", OFFLINE}},
    {CAUSE_EXTERNAL_SERVICE, NULL, NULL,
     {"see whether a compute node reaches the service:", "$ srun -n1 curl -sSI URL", OFFLINE}},
    {CAUSE_NETWORK, NULL, NULL,
     {"if it comes back, look at the links, on the nodes of the job:",
      "$ ibstat | grep -E 'CA|State|Rate'; ibdiagnet -r",
      "$ dmesg -T | grep -iE 'mlx5|link.*down|bnxt|efa'"}},
    {CAUSE_NODE_FAILURE, NULL, NULL,
     {"what the scheduler says of the node:", "$ sinfo -R; scontrol show node NODE"}},
    {CAUSE_NODE_HARDWARE, NULL, NULL,
     {"what its kernel says, on the node:",
      "$ dmesg -T --level=err,crit,alert,emerg | tail -40"}},
    {CAUSE_FRAMEWORK, NULL, NULL,
     {"if it comes back at the same place, try another version, or report it with the lines above"}},
    {CAUSE_UNKNOWN, NULL, NULL,
     {"these logs do not say why. The scheduler and the kernels of the nodes may:",
      "$ sacct -j JOBID --format=JobID,State%25,ExitCode,NodeList%30",
      "$ dmesg -T | grep -iE 'xid|oom|segfault|mce|i/o error'"}},

    {CAUSE_TIME_LIMIT, NULL, NULL,
     {"start it again, from its last checkpoint; nothing is wrong. With more time:",
      "$ sbatch --time=D-HH:MM:SS JOBSCRIPT"}},
    {CAUSE_PREEMPTION, NULL, NULL,
     {"start it again (or let the scheduler do so: #SBATCH --requeue); nothing is wrong"}},
    {CAUSE_CANCELLED, NULL, NULL,
     {"it was told to end, by a person, a script or the scheduler. Who, and why:",
      "$ sacct -j JOBID --format=JobID,State%30,Reason,ExitCode"}},
};
/* clang-format on */

struct advisor {
    const struct dossier *d;
    const struct incident *in;
    advise_fn fn;
    void *ctx;
    char job[JOB_ID_DIGITS + 1]; /* of Slurm, as the name of a file tells; "" = not known */
};

static void say(const struct advisor *a, const char *text)
{
    a->fn(a->ctx, false, text);
}

static void command(const struct advisor *a, const char *text)
{
    a->fn(a->ctx, true, text);
}

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-"

/* May stand in a command line as it is. */
static bool is_plain(const char *name)
{
    return *name && *name != '-' && strspn(name, PLAIN) == strlen(name);
}

static bool is_plain_path(const char *path)
{
    return *path && *path != '-' && strspn(path, PLAIN "/") == strlen(path) &&
           !str_endswith(path, ".gz") && !str_endswith(path, ".zst");
}

/* ---- the table ---- */

static bool is_signature(const char *wanted, const char *signature)
{
    size_t n = strlen(wanted);

    if (str_endswith(wanted, ".*"))
        return strncmp(wanted, signature, n - 1) == 0;
    return streq(wanted, signature);
}

static bool shows_words(const struct incident *in, const char *words)
{
    for (uint32_t i = 0; i < in->n_evidence; i++)
        if (strstr(in->evidence[i].text, words))
            return true;
    return false;
}

static const struct recipe *find_recipe(const struct incident *in)
{
    for (size_t i = 0; i < ARRAY_SIZE(recipes); i++) {
        const struct recipe *r = &recipes[i];

        if (r->cause == in->cause && (!r->signature || is_signature(r->signature, in->signature)) &&
            (!r->words || shows_words(in, r->words)))
            return r;
    }
    return NULL;
}

/* A command of the table, with what is known put in. */
static void fill_in(const struct advisor *a, const char *text)
{
    static const char job[] = "JOBID", node[] = " NODE";
    const char *name = a->in->culprits.n_nodes > 0 ? a->in->culprits.nodes[0] : "";
    char line[COMMAND_LEN], *at;

    STR_COPY(line, text);
    at = strstr(line, job);
    if (*a->job && at)
        STR_PRINTF(line, "%.*s%s%s", (int)(at - line), text, a->job,
                   text + (at - line) + sizeof(job) - 1);
    at = strstr(line, node);
    if (at && at[sizeof(node) - 1] == '\0' && is_plain(name))
        str_copy(at + 1, sizeof(line) - (size_t)(at + 1 - line), name);
    command(a, line);
}

static void tell_recipe(const struct advisor *a, const struct recipe *r)
{
    for (size_t i = 0; i < STEPS_MAX && r->steps[i]; i++) {
        if (str_startswith(r->steps[i], "$ "))
            fill_in(a, r->steps[i] + 2);
        else
            say(a, r->steps[i]);
    }
}

/* ---- starting again ---- */

static void suggest_exclude(const struct advisor *a)
{
    const struct culprits *c = &a->in->culprits;
    _cleanup_strbuf_ struct strbuf b = {0};

    for (uint32_t i = 0; i < c->n_nodes; i++)
        if (is_plain(c->nodes[i]))
            strbuf_addf(&b, "%s%s", b.len ? "," : "sbatch --exclude=", c->nodes[i]);
    if (b.len == 0) {
        say(a, "start it again without the node that this log came from: restarting in place meets "
               "the same fault");
        return;
    }
    say(a, "start it again from the last checkpoint, without the node at fault:");
    strbuf_adds(&b, " JOBSCRIPT");
    command(a, strbuf_str(&b));
}

static void suggest_start(const struct advisor *a)
{
    if (a->in->advice == ADVICE_RESTART_EXCLUDING)
        suggest_exclude(a);
    else if (a->in->advice == ADVICE_RESTART && a->in->class == CLASS_CRASH)
        say(a, "start it again from the last checkpoint");
}

/* ---- what to look at ---- */

static void suggest_gpu_check(const struct advisor *a)
{
    const struct culprits *c = &a->in->culprits;
    char line[COMMAND_LEN];

    if (a->in->cause != CAUSE_GPU_HARDWARE || (c->n_nodes == 0 && c->n_devices == 0))
        return;
    say(a, "look at the GPU on its node:");
    if (c->n_devices > 0 && is_plain(c->devices[0]))
        STR_PRINTF(line, "nvidia-smi -q -i %s -d ECC,ROW_REMAPPER,PAGE_RETIREMENT", c->devices[0]);
    else
        STR_PRINTF(line, "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT");
    command(a, line);
    command(a, "dmesg -T | grep -iE 'xid|nvrm|nvlink'");
}

/* What stands above the decisive line: often the rest of a traceback. */
static void suggest_reading(const struct advisor *a)
{
    const struct evidence_line *l = &a->in->evidence[0];
    const char *path;
    char line[COMMAND_LEN];
    uint64_t from;

    if (a->in->n_evidence == 0 || l->line == 0 || l->file >= a->d->files.n ||
        (a->in->cause != CAUSE_USER_CODE && a->in->cause != CAUSE_USER_CONFIG))
        return;
    path = a->d->files.v[l->file].path;
    from = l->line > LINES_BEFORE ? l->line - LINES_BEFORE : 1;
    if (!is_plain_path(path))
        return;
    STR_PRINTF(line, "sed -n '%" PRIu64 ",%" PRIu64 "p' %s", from, l->line + 5, path);
    if (strlen(line) > COMMAND_SHOWN)
        return;
    say(a, "what stands around the decisive line:");
    command(a, line);
}

static void advise_on_hang(const struct advisor *a)
{
    if (a->in->finished) {
        say(a, "the work is done: check the last checkpoint and cancel what is left of the job:");
        fill_in(a, "scancel JOBID");
        return;
    }
    if (a->in->advice == ADVICE_STOP) {
        say(a, "mend the program: its ranks took different ways, and will again. This in the job's "
               "script names the calls:");
        command(a, "export TORCH_DISTRIBUTED_DEBUG=DETAIL");
        return;
    }
    suggest_start(a);
    say(a, a->in->advice == ADVICE_RESTART_EXCLUDING
               ? "if it still runs, look first at what its processes do:"
               : "start it again from the last checkpoint; if it still runs, look first at what "
                 "its processes do, on the node of a rank:");
    command(a, "pgrep -u $USER -af python");
    command(a, "py-spy dump --pid PID");
}

static void advise_on_straggler(const struct advisor *a)
{
    suggest_start(a);
    say(a, "find the slow node: clocks, power and link width that differ from its peers:");
    command(a, "nvidia-smi -q -d CLOCK,POWER,TEMPERATURE,PERFORMANCE");
    command(a, "nvidia-smi --query-gpu=pcie.link.width.current --format=csv");
}

/* "The same start fails again" is no word beside the advice to start again. */
static bool is_apt(const struct incident *in, const struct recipe *r)
{
    return in->advice != ADVICE_RESTART || cause_domain(in->cause) != DOMAIN_WORKLOAD ||
           r->steps[1];
}

static void advise_on_end(const struct advisor *a)
{
    const struct recipe *r = find_recipe(a->in);

    suggest_start(a);
    if (r && is_apt(a->in, r))
        tell_recipe(a, r);
    suggest_gpu_check(a);
    suggest_reading(a);
}

/* "slurm-4242.out", "logs/slurm-4242_3.err.gz" */
static void find_job(struct advisor *a)
{
    static const char word[] = "slurm-";

    VEC_FOREACH (&a->d->files, f) {
        const char *at = strstr(f->path, word);
        size_t n = at ? strspn(at + sizeof(word) - 1, "0123456789") : 0;

        if (n > 0 && n <= JOB_ID_DIGITS) {
            str_copy_n(a->job, sizeof(a->job), at + sizeof(word) - 1, n);
            return;
        }
    }
}

void advise(const struct dossier *d, advise_fn fn, void *ctx)
{
    struct advisor a = {.d = d, .in = &d->incident, .fn = fn, .ctx = ctx};

    find_job(&a);
    if (d->incident.class == CLASS_HANG)
        advise_on_hang(&a);
    else if (d->incident.class == CLASS_STRAGGLER)
        advise_on_straggler(&a);
    else if (d->incident.class != CLASS_HEALTHY)
        advise_on_end(&a);
}
