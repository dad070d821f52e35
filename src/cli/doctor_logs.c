/* SPDX-License-Identifier: Apache-2.0 */

/* Whether the logs of the jobs that run can be read here as their owners: in a child each, because
 * a file system may hang. */

#include "base/cleanup.h"
#include "cli/doctor.h"
#include "cli/run_program.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#define LOGS_MAX 32 /* that are tried */
#define PATIENCE (3 * USEC_PER_SEC)

enum trouble { TROUBLE_NONE, TROUBLE_ABSENT, TROUBLE_FORBIDDEN, TROUBLE_USER, TROUBLE_OTHER };

struct log_file {
    const char *path;
    uid_t uid;
};

static bool become(uid_t uid)
{
    const struct passwd *pw;

    if (geteuid() == uid)
        return true;
    pw = getpwuid(uid);
    return pw && initgroups(pw->pw_name, pw->pw_gid) == 0 && setgid(pw->pw_gid) == 0 &&
           setuid(uid) == 0;
}

/* A file that is not there yet, or whose name differs between tasks, needs its folder only. */
static int try_to_read(const void *arg)
{
    const struct log_file *f = arg;
    _cleanup_(closep) int fd = -1;
    char folder[4096];

    if (!become(f->uid))
        return TROUBLE_USER;
    fd = strchr(f->path, '%') ? -1 : open(f->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0)
        return TROUBLE_NONE;
    if (!strchr(f->path, '%') && errno != ENOENT)
        return errno == EACCES ? TROUBLE_FORBIDDEN : TROUBLE_OTHER;
    STR_COPY(folder, f->path);
    folder[strcspn(folder, "%")] = '\0';
    if (strrchr(folder, '/'))
        *strrchr(folder, '/') = '\0';
    fd = open(*folder ? folder : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && faccessat(fd, ".", X_OK, AT_EACCESS) == 0)
        return TROUBLE_NONE;
    return errno == ENOENT ? TROUBLE_ABSENT : errno == EACCES ? TROUBLE_FORBIDDEN : TROUBLE_OTHER;
}

static const char *words_for(int trouble)
{
    switch (trouble) {
    case TROUBLE_ABSENT:
        return "its folder is not on this host";
    case TROUBLE_FORBIDDEN:
        return "its owner may not read it here";
    case TROUBLE_USER:
        return "this host does not know its owner";
    case -ETIMEDOUT:
        return "its file system does not answer";
    default:
        return "it cannot be opened";
    }
}

struct sums {
    unsigned tried, readable, absent;
    char first[400]; /* what is wrong with the first that is not */
};

static void try_log(struct sums *s, const json_t *job, const char *path)
{
    struct log_file f = {path, (uid_t)json_integer_value(json_object_get(job, "uid"))};
    const char *label = json_string_value(json_object_get(job, "label"));
    int r;

    if (geteuid() != 0 && f.uid != geteuid())
        return;
    s->tried++;
    r = run_apart(try_to_read, &f, PATIENCE);
    s->absent += r == TROUBLE_ABSENT;
    if (r == TROUBLE_NONE)
        s->readable++;
    else if (!*s->first)
        STR_PRINTF(s->first, "job %s, %s: %s", label ? label : "?", path, words_for(r));
}

void doctor_logs(struct doctor *d, const json_t *jobs)
{
    struct sums s = {0};
    const json_t *job;
    size_t i;

    json_array_foreach (jobs, i, job) {
        const char *state = json_string_value(json_object_get(job, "state"));
        const char *path = json_string_value(json_object_get(job, "stdout_path"));

        if (s.tried < LOGS_MAX && state && streq(state, "running") && path && *path == '/')
            try_log(&s, job, path);
    }
    if (s.tried == 0)
        doctor_row(d, DOCTOR_SKIP, "logs", geteuid() != 0 ? "run doctor as root" : NULL,
                   "no job runs whose log could be tried");
    else if (s.readable == s.tried)
        doctor_row(d, DOCTOR_OK, "logs", NULL,
                   "tried of %u running job%s: readable as their owners", s.tried,
                   s.tried == 1 ? "" : "s");
    else if (s.readable + s.absent == s.tried && *d->config->agents.listen &&
             d->config->readers.read_at != READ_AT_CONTROLLER)
        doctor_row(d, DOCTOR_OK, "logs", NULL,
                   "%u of %u are to be read on the jobs' nodes (see 'its readers'): %s", s.absent,
                   s.tried, s.first);
    else
        doctor_row(d, s.readable == 0 ? DOCTOR_FAIL : DOCTOR_WARN, "logs",
                   "mount the users' file systems here, or have the nodes' agents read them",
                   "%u of %u cannot be read: %s", s.tried - s.readable, s.tried, s.first);
}
