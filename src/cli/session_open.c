/* SPDX-License-Identifier: Apache-2.0 */

/* What is read before the job starts: the policy, and what the runs before left. */

#include "base/log.h"
#include "base/str.h"
#include "cli/runs.h"
#include "cli/session_parts.h"
#include "config/policy_file.h"
#include "core/core.h"
#include "core/state/state.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDED_BYTES_MAX (16 << 20) /* looked at when a run begins */
#define TAIL_EVENTS      2000

static int look_at_program(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return errno == EACCES ? -EACCES : -ENOENT;
    if (!S_ISREG(st.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0)
        return -EACCES;
    return 0;
}

/* A file that may not be run is the answer only where no later folder has one that may. */
static int look_along_path(const char *name)
{
    const char *folders = getenv("PATH");
    int found = -ENOENT;

    for (const char *at = folders ? folders : "/bin:/usr/bin"; at;) {
        const char *end = strchrnul(at, ':');
        char path[PATH_MAX];
        int r, n = snprintf(path, sizeof(path), "%.*s%s%s", (int)(end - at), at,
                            end > at ? "/" : "", name);

        r = n < (int)sizeof(path) ? look_at_program(path) : -ENOENT;
        if (r == 0)
            return 0;
        if (r == -EACCES)
            found = r;
        at = *end ? end + 1 : NULL;
    }
    return found;
}

int session_find_command(const char *name, struct err *e)
{
    int r = -ENOENT;

    if (name[0] != '\0')
        r = strchr(name, '/') ? look_at_program(name) : look_along_path(name);
    return r < 0 ? err_set(e, r, "cannot run '%s': %s", name, strerror(-r)) : 0;
}

int session_load_policy(struct session *s, struct err *e)
{
    char found[PATH_MAX];

    policy_default(&s->policy);
    if (s->o->policy_file)
        return policy_load(s->o->policy_file, &s->policy, e);
    if (policy_find(found, sizeof(found)) < 0)
        return 0;
    return policy_load(found, &s->policy, e);
}

static void tell_story(void *ctx, const struct event *event)
{
    story_add_tail(ctx, event);
}

/* The newest events alone: enough to say where a run was when it was killed. */
static int read_tail(struct session *s, struct err *e)
{
    uint64_t last = journal_last_seq(s->journal);

    return journal_each(s->journal, last > TAIL_EVENTS ? last - TAIL_EVENTS : 0, tell_story,
                        &s->story, e);
}

static void fold(void *ctx, const struct event *event)
{
    core_fold(ctx, event);
}

/* What the journal taught about the job's rhythm, for the one that begins now. */
static int read_learned(struct session *s, struct err *e)
{
    _cleanup_(core_freep) struct core *core = core_new();
    int r = journal_each(s->journal, 0, fold, core, e);
    const struct job *job;

    job = r >= 0 ? model_job(core_model(core), s->o->name) : NULL;
    if (job)
        timing_tell(&job->timing, &s->learned);
    return r;
}

/* Beginning reads the whole journal, 4 us an event. So one that has grown large is put beside the
 * logs of the run before, and goes with them; what it taught is carried over. */
static int archive_journal(struct session *s, const char *path, struct err *e)
{
    struct stat st;
    int r;

    if (stat(path, &st) < 0 || st.st_size < FOLDED_BYTES_MAX)
        return 0;
    r = read_tail(s, e);
    if (r >= 0)
        r = read_learned(s, e);
    if (r < 0)
        return r;
    s->archived = true;
    s->journal = journal_free(s->journal); /* what is in the WAL goes into the file */
    runs_archive(s->home.path, s->home.run, path);
    return journal_open(path, JOURNAL_WRITE, &s->journal, e);
}

static int open_state(struct session *s, struct err *e)
{
    char path[PATH_MAX];
    int r = state_journal_path(s->o->name, path, e);

    if (r >= 0)
        r = job_home_open(s->o->name, &s->home, e);
    if (r >= 0)
        r = journal_open(path, JOURNAL_WRITE, &s->journal, e);
    if (r < 0)
        return r;
    s->story.lost_events = journal_lost(s->journal);
    return archive_journal(s, path, e);
}

int session_open_state(struct session *s, struct err *e)
{
    int r = open_state(s, e);

    s->no_state = r < 0;
    return r;
}

void session_advise(const struct session *s, int error)
{
    static const char elsewhere[] =
        "or keep the state elsewhere: REKNIT_STATE_DIR=/another/folder reknit run ...";
    _cleanup_strbuf_ struct strbuf folder = {0};
    char root[PATH_MAX];

    if (error == -EBUSY || state_root(root, NULL) < 0)
        return;
    strbuf_add_shell_word(&folder, s->home.path[0] ? s->home.path : root);
    switch (error) {
    case -EISDIR:
    case -EBADMSG:
    case -EPROTO:
        log_error("the job was not started; to move that aside and begin a new journal:");
        log_error("  (cd %s && mkdir -p unreadable && mv journal.db* unreadable/)",
                  strbuf_str(&folder));
        break;
    case -ENOSPC:
    case -EDQUOT:
        log_error("the job was not started; make room (df -h %s), %s", strbuf_str(&folder),
                  elsewhere);
        break;
    case -EFBIG:
        log_error("the job was not started; raise the limit on the size of files (ulimit -f)");
        break;
    default:
        log_error("the job was not started; make %s a folder that you can write to, %s",
                  strbuf_str(&folder), elsewhere);
    }
}
