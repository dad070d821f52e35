/* SPDX-License-Identifier: Apache-2.0 */

/* What fills a journal is signs of life: a step a second of each job, and the ticks of the clock.
 * What a fold makes of old ones is little: that the job was alive, and how far it got. So of those
 * beyond the detail that is kept, one in an hour stays (of lines that matched one in ten minutes,
 * of each signature), and the last of each attempt, which the rhythm and the evidence rest on.
 * Facts that stand alone (phases, checkpoints, exits, looks, all that was derived) stay.
 *
 * Jobs that ended long ago go as a whole, their end last, so that half of one is never taken for a
 * job that lives.
 *
 * The table `thinned` says how far that has come, and how many events are gone by it: they are not
 * lost. Only what lies before can be deleted at all. */

#include "journal/thin.h"

#include "base/hash.h"
#include "base/str.h"
#include "journal/inside.h"

#include <string.h>

#define LAST_MAX       600 /* signals of an attempt that stay in any case; a rhythm has 512 */
#define LAST_ENDED_MAX 60  /* ... of a job that has ended; should it run again, it has a rhythm */
#define LOOK_AGAIN     20000
#define WALK_MAX       2048 /* events of a job that are looked through at once */
#define KEPT_MAX       16384
#define HOUR_APART     USEC_PER_HOUR
#define HITS_APART     (10 * USEC_PER_MIN)

/* Statements */

static int prepare(struct journal *j, const char *sql, sqlite3_stmt **ret, struct err *e)
{
    return sqlite3_prepare_v2(j->db, sql, -1, ret, NULL) == SQLITE_OK ? 0 : journal_error(j, e);
}

/* Runs it to its end, and frees it. */
static int finish(struct journal *j, sqlite3_stmt *s, struct err *e)
{
    int r = sqlite3_step(s) == SQLITE_DONE ? 0 : journal_error(j, e);

    sqlite3_finalize(s);
    return r;
}

static int get_number(struct journal *j, const char *sql, int64_t a, int64_t *ret, struct err *e)
{
    sqlite3_stmt *s = NULL;
    int r = prepare(j, sql, &s, e);

    if (r < 0)
        return r;
    sqlite3_bind_int64(s, 1, a);
    r = sqlite3_step(s) == SQLITE_ROW ? 0 : journal_error(j, e);
    if (r >= 0)
        *ret = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return r;
}

static int run_with(struct journal *j, const char *sql, int64_t a, struct err *e)
{
    sqlite3_stmt *s = NULL;
    int r = prepare(j, sql, &s, e);

    if (r < 0)
        return r;
    sqlite3_bind_int64(s, 1, a);
    return finish(j, s, e);
}

static int raise_mark(struct journal *j, uint64_t upto, struct err *e)
{
    return run_with(j, "UPDATE thinned SET upto = max(upto, ?1)", (int64_t)upto, e);
}

static int count_deleted(struct journal *j, int64_t n, struct err *e)
{
    return n > 0 ? run_with(j, "UPDATE thinned SET deleted = deleted + ?1", n, e) : 0;
}

/* How far to go: times ascend with the numbers. */

static int time_at(struct journal *j, uint64_t seq, usec_t *ret, struct err *e)
{
    int64_t t = 0;
    int r = get_number(
        j, "SELECT coalesce((SELECT time_us FROM event WHERE seq >= ?1 ORDER BY seq LIMIT 1), 0)",
        (int64_t)seq, &t, e);

    if (r >= 0)
        *ret = t;
    return r;
}

static int horizon_of(struct journal *j, const struct journal_keep *k, uint64_t *ret, struct err *e)
{
    uint64_t lo = 0, hi = j->last_seq; /* events up to lo are old enough */

    while (lo < hi) {
        uint64_t mid = hi - (hi - lo) / 2;
        usec_t t = 0;
        int r = time_at(j, mid, &t, e);

        if (r < 0)
            return r;
        if (t < k->now - k->detail)
            lo = mid;
        else
            hi = mid - 1;
    }
    if (j->last_seq > k->newest && lo < j->last_seq - k->newest)
        lo = j->last_seq - k->newest;
    *ret = lo;
    return 0;
}

/* Signs of life */

static uint64_t key_of(const char *job, uint32_t attempt, const char *what, const char *signature)
{
    uint64_t h = hash_bytes(HASH_INIT, job, strlen(job) + 1);

    h = hash_bytes(h, &attempt, sizeof(attempt));
    h = hash_bytes(h, what, strlen(what) + 1);
    return hash_bytes(h, signature, strlen(signature));
}

/* Whether one of the kind stays that is not far before. */
static bool is_crowded(struct journal *j, uint64_t key, usec_t at, usec_t apart)
{
    VEC_FOREACH (&j->kept, x) {
        if (x->key != key)
            continue;
        if (at < x->at + apart)
            return true;
        x->at = at;
        return false;
    }
    if (j->kept.n >= KEPT_MAX)
        j->kept.n = 0;
    *VEC_PUSH(&j->kept) = (struct thin_kept){key, at};
    return false;
}

/* From there on, for as far as it is looked: whether there are more signals of the attempt than
 * stay in any case; then the newest that has so many behind it is `before`. Events of an attempt
 * stand together, but for a few: where others follow that fill the walk, what stands there stays.
 */
static int find_last(struct journal *j, const char *job, uint32_t attempt, uint64_t from,
                     struct thin_last *ret, struct err *e)
{
    sqlite3_stmt *s = NULL;
    int r =
        prepare(j,
                "WITH walk AS (SELECT seq, attempt, kind FROM event WHERE job = ?1 AND seq >= ?3"
                " ORDER BY seq LIMIT ?6) SELECT (SELECT count(*) FROM walk),"
                " coalesce((SELECT seq FROM walk WHERE attempt = ?2 AND kind = 'signal'"
                " ORDER BY seq DESC LIMIT 1 OFFSET CASE WHEN EXISTS (SELECT 1 FROM"
                " (SELECT kind FROM event WHERE job = ?1 ORDER BY seq DESC LIMIT 8)"
                " WHERE kind = 'job-ended') THEN ?5 ELSE ?4 END), 0)",
                &s, e);

    if (r < 0)
        return r;
    sqlite3_bind_text(s, 1, job, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, attempt);
    sqlite3_bind_int64(s, 3, (int64_t)from);
    sqlite3_bind_int64(s, 4, LAST_MAX);
    sqlite3_bind_int64(s, 5, LAST_ENDED_MAX);
    sqlite3_bind_int64(s, 6, WALK_MAX);
    r = sqlite3_step(s) == SQLITE_ROW ? 0 : journal_error(j, e);
    if (r >= 0 && sqlite3_column_int64(s, 1) > 0) {
        ret->before = (uint64_t)sqlite3_column_int64(s, 1);
        ret->as_of = sqlite3_column_int64(s, 0) < WALK_MAX ? j->last_seq : 0;
    } else if (r >= 0) {
        ret->as_of = j->last_seq;
    }
    sqlite3_finalize(s);
    return r;
}

static struct thin_last *last_of(struct journal *j, uint64_t key)
{
    struct thin_last *l;

    VEC_FOREACH (&j->last, x)
        if (x->key == key)
            return x;
    if (j->last.n >= KEPT_MAX)
        j->last.n = 0;
    l = VEC_PUSH(&j->last);
    l->key = key;
    return l;
}

/* Whether it is among the last signals of its attempt. Which those are is looked up again when so
 * many events have come since that it matters. */
static int is_of_the_last(struct journal *j, uint64_t seq, const char *job, uint32_t attempt,
                          bool *ret, struct err *e)
{
    struct thin_last *l = last_of(j, key_of(job, attempt, "", ""));
    int r = 0;

    if (seq > l->before && (l->as_of == 0 || j->last_seq >= l->as_of + LOOK_AGAIN))
        r = find_last(j, job, attempt, seq, l, e);
    *ret = seq > l->before;
    return r;
}

static const char *text_of(sqlite3_stmt *s, int column)
{
    const char *text = (const char *)sqlite3_column_text(s, column);

    return text ? text : "";
}

/* row: seq, time_us, kind, job, attempt, kind of the signal, its signature. */
static int may_go(struct journal *j, sqlite3_stmt *row, bool *ret, struct err *e)
{
    const char *job = text_of(row, 3), *kind = text_of(row, 5);
    uint32_t attempt = (uint32_t)sqlite3_column_int64(row, 4);
    bool hit = streq(kind, "hit"), last = false;
    uint64_t key = key_of(job, attempt, kind, hit ? text_of(row, 6) : "");
    int r;

    *ret = streq(text_of(row, 2), "tick");
    if (*ret ||
        (!hit && !streq(kind, "step") && !streq(kind, "activity") && !streq(kind, "output")))
        return 0;
    if (!is_crowded(j, key, sqlite3_column_int64(row, 1), hit ? HITS_APART : HOUR_APART))
        return 0;
    r = is_of_the_last(j, (uint64_t)sqlite3_column_int64(row, 0), job, attempt, &last, e);
    *ret = !last;
    return r;
}

typedef VEC(int64_t) numbers;

/* 1: there is more. */
static int choose(struct journal *j, uint64_t horizon, unsigned most, numbers *ret,
                  uint64_t *ret_upto, struct err *e)
{
    sqlite3_stmt *s = NULL;
    unsigned n = 0;
    int r = prepare(j,
                    "SELECT seq, time_us, kind, job, attempt, CASE kind WHEN 'signal' THEN"
                    " json_extract(body, '$.kind') END, CASE kind WHEN 'signal' THEN"
                    " json_extract(body, '$.signature') END FROM event"
                    " WHERE seq > (SELECT upto FROM thinned) AND seq <= ?1 ORDER BY seq LIMIT ?2",
                    &s, e);

    if (r < 0)
        return r;
    sqlite3_bind_int64(s, 1, (int64_t)horizon);
    sqlite3_bind_int64(s, 2, most);
    while (r >= 0 && (r = sqlite3_step(s)) == SQLITE_ROW) {
        bool go = false;

        r = may_go(j, s, &go, e);
        *ret_upto = (uint64_t)sqlite3_column_int64(s, 0);
        n++;
        if (go)
            *VEC_PUSH(ret) = *ret_upto;
    }
    if (r > 0 && r != SQLITE_DONE)
        r = journal_error(j, e);
    sqlite3_finalize(s);
    return r < 0 ? r : n == most;
}

static int delete_each(struct journal *j, const numbers *list, struct err *e)
{
    sqlite3_stmt *s = NULL;
    int r = prepare(j, "DELETE FROM event WHERE seq = ?1", &s, e);

    for (size_t i = 0; r >= 0 && i < list->n; i++) {
        sqlite3_bind_int64(s, 1, list->v[i]);
        if (sqlite3_step(s) != SQLITE_DONE)
            r = journal_error(j, e);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return r < 0 ? r : count_deleted(j, (int64_t)list->n, e);
}

static int thin_signals(struct journal *j, uint64_t horizon, unsigned most, struct err *e)
{
    numbers list = {0};
    uint64_t upto = 0;
    int r = choose(j, horizon, most, &list, &upto, e), more = r;

    if (r >= 0)
        r = raise_mark(j, upto, e);
    if (r >= 0)
        r = delete_each(j, &list, e);
    VEC_DONE(&list);
    return r < 0 ? r : more;
}

/* Jobs */

/* 1 and the job that ended first, and so long ago, and did not begin anew; 0: none. */
static int find_ended(struct journal *j, usec_t before, uint64_t horizon, char ret[JOB_NAME_LEN],
                      struct err *e)
{
    sqlite3_stmt *s = NULL;
    int r = prepare(j,
                    "SELECT job FROM event AS e WHERE kind = 'job-ended' AND kind <> 'signal' AND"
                    " kind <> 'tick' AND time_us < ?1 AND seq <= ?2 AND NOT EXISTS (SELECT 1 FROM"
                    " event AS l WHERE l.job = e.job AND l.seq > e.seq AND (l.seq > ?2 OR l.kind IN"
                    " ('job-seen', 'attempt-started'))) ORDER BY seq LIMIT 1",
                    &s, e);

    if (r < 0)
        return r;
    sqlite3_bind_int64(s, 1, before);
    sqlite3_bind_int64(s, 2, (int64_t)horizon);
    r = sqlite3_step(s);
    if (r == SQLITE_ROW)
        str_copy(ret, JOB_NAME_LEN, text_of(s, 0));
    else if (r != SQLITE_DONE)
        r = journal_error(j, e);
    sqlite3_finalize(s);
    return r < 0 ? r : r == SQLITE_ROW;
}

static int drop_job(struct journal *j, const char *job, unsigned most, struct err *e)
{
    sqlite3_stmt *s = NULL;
    int r = prepare(j,
                    "DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE job = ?1"
                    " ORDER BY kind = 'job-ended', seq LIMIT ?2)",
                    &s, e);

    if (r < 0)
        return r;
    sqlite3_bind_text(s, 1, job, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, most);
    r = finish(j, s, e);
    return r < 0 ? r : count_deleted(j, sqlite3_changes64(j->db), e);
}

/* The mark must be beyond what goes: signals up to the horizon are thinned out before. */
static int thin_step(struct journal *j, const struct journal_keep *k, unsigned most, struct err *e)
{
    char job[JOB_NAME_LEN];
    uint64_t horizon = 0;
    int r = horizon_of(j, k, &horizon, e);

    if (r >= 0)
        r = thin_signals(j, horizon, most, e);
    if (r != 0)
        return r;
    r = find_ended(j, k->now - k->ended, horizon, job, e);
    if (r > 0)
        r = drop_job(j, job, most, e);
    else
        return r;
    return r < 0 ? r : 1;
}

int journal_thin(struct journal *j, const struct journal_keep *k, unsigned events, struct err *e)
{
    int r = journal_run(j, "BEGIN IMMEDIATE", e), more;

    if (r < 0)
        return r;
    r = more = thin_step(j, k, events, e);
    if (r >= 0)
        r = journal_run(j, "COMMIT", e);
    if (r < 0 && !sqlite3_get_autocommit(j->db))
        sqlite3_exec(j->db, "ROLLBACK", NULL, NULL, NULL);
    return r < 0 ? r : more;
}

static int ask_thinned(struct journal *j, const char *sql, uint64_t *ret, struct err *e)
{
    int64_t n = 0;
    int r = j->version < 3 || j->empty ? 0 : journal_number(j, sql, &n, e);

    if (r >= 0)
        *ret = (uint64_t)n;
    return r;
}

int journal_thinned(struct journal *j, uint64_t *ret, struct err *e)
{
    return ask_thinned(j, "SELECT upto FROM thinned", ret, e);
}

int journal_thinned_away(struct journal *j, uint64_t *ret, struct err *e)
{
    return ask_thinned(j, "SELECT deleted FROM thinned", ret, e);
}
