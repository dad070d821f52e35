/* SPDX-License-Identifier: Apache-2.0 */

/* What is read before the job starts: the policy, and what the runs before left. */

#include "cli/session_parts.h"
#include "config/policy_file.h"

#include <sys/stat.h>

#define JOURNAL_BYTES_MAX (64 << 20) /* looked at when a run begins */

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

static int fold_story(struct session *s, struct err *e)
{
    _cleanup_(journal_cursor_freep) struct journal_cursor *cursor = NULL;
    _cleanup_(freep) struct event *event = xnew(struct event);
    int r = journal_read(s->journal, 0, &cursor, e);

    while (r >= 0 && (r = journal_next(cursor, event, e)) > 0)
        story_add(&s->story, event);
    return r;
}

/* A journal that has grown large is put beside the logs of the run before, and goes with them. What
 * it taught about the job's rhythm is learned anew. Not after a lost run: that is still to be told.
 */
static int archive_journal(struct session *s, const char *path, struct err *e)
{
    const struct story_run *last = story_last_run(&s->story);
    struct stat st;

    if (!last || !last->over || stat(path, &st) < 0 || st.st_size < JOURNAL_BYTES_MAX)
        return 0;
    s->journal = journal_free(s->journal); /* nothing stays in the WAL */
    job_home_archive(&s->home, path);
    story_done(&s->story);
    s->story = (struct story){.last_run_only = true};
    return journal_open(path, JOURNAL_WRITE, &s->journal, e);
}

int session_open_state(struct session *s, struct err *e)
{
    char path[PATH_MAX];
    int r = state_journal_path(s->o->name, path, e);

    if (r >= 0)
        r = job_home_open(s->o->name, &s->home, e);
    if (r >= 0)
        r = journal_open(path, JOURNAL_WRITE, &s->journal, e);
    if (r >= 0)
        r = fold_story(s, e);
    return r < 0 ? r : archive_journal(s, path, e);
}
