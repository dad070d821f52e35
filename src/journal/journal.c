/* SPDX-License-Identifier: Apache-2.0 */

/* SQLite in WAL mode: a commit appends, a crash loses nothing that was committed, and readers
 * never wait. Triggers refuse to change or delete what was written.
 *
 * Durability costs an fsync, so it is chosen per commit: synchronous=NORMAL for batches that only
 * observe (a power cut may lose the last of them, a killed process none), FULL before an intent
 * leaves. A FULL commit also makes durable whatever came before it. */

#include "journal/journal.h"

#include "base/str.h"
#include "base/vec.h"
#include "wire/codec.h"
#include "journal/high_water.h"
#include "journal/inside.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define APPLICATION_ID 0x524b4e54 /* "RKNT" */
#define OPEN_BUSY_MS   5000       /* another process may hold the file for a moment */
#define BUSY_MS        50         /* ... but who has a loop to run comes again later */

struct row {
    uint64_t seq, parent;
    usec_t time_us;
    enum event_kind kind;
    uint32_t attempt;
    char *job, *body;
};

struct journal_batch {
    VEC(struct row) rows;
};

struct journal_cursor {
    struct journal *journal;
    sqlite3_stmt *select; /* NULL: an empty journal */
};

/* migrations[v] brings a file of version v to v + 1. Never edit one that was released. */
static const char *const migrations[] = {
    "CREATE TABLE event ("
    "  seq INTEGER PRIMARY KEY,"
    "  parent INTEGER NOT NULL,"
    "  time_us INTEGER NOT NULL,"
    "  kind TEXT NOT NULL,"
    "  job TEXT NOT NULL,"
    "  attempt INTEGER NOT NULL,"
    "  body TEXT NOT NULL"
    ") STRICT;"
    "CREATE TRIGGER event_no_update BEFORE UPDATE ON event"
    "  BEGIN SELECT raise(ABORT, 'the journal is append-only'); END;"
    "CREATE TRIGGER event_no_delete BEFORE DELETE ON event"
    "  BEGIN SELECT raise(ABORT, 'the journal is append-only'); END;",
    /* Most events are signals and ticks, and nobody asks for those of all jobs at once. */
    "CREATE INDEX event_by_job ON event (job, seq);"
    "CREATE INDEX event_by_kind ON event (kind, seq) WHERE kind <> 'signal' AND kind <> 'tick';",
    /* Old events may go, one way (thin.c): what is gone so is counted, and is no loss. */
    "CREATE TABLE thinned (upto INTEGER NOT NULL, deleted INTEGER NOT NULL) STRICT;"
    "INSERT INTO thinned VALUES (0, 0);"
    "DROP TRIGGER event_no_delete;"
    "CREATE TRIGGER event_no_delete BEFORE DELETE ON event"
    "  WHEN OLD.seq > (SELECT upto FROM thinned)"
    "  BEGIN SELECT raise(ABORT, 'the journal is append-only'); END;",
};

#define SCHEMA_VERSION ((int)ARRAY_SIZE(migrations))

static int to_errno(int code)
{
    switch (code & 0xff) {
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return -EACCES;
    case SQLITE_CANTOPEN:
        return -ENOENT;
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return -EBADMSG;
    case SQLITE_NOMEM:
        return -ENOMEM;
    default:
        return -EIO;
    }
}

/* What the system said, where SQLite knows only that something failed; 0 = nothing of interest. */
static int system_errno(sqlite3 *db)
{
    int code = sqlite3_extended_errcode(db) & 0xff, error = sqlite3_system_errno(db);

    if (code != SQLITE_CANTOPEN && code != SQLITE_IOERR)
        return 0;
    switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EROFS:
    case EACCES:
    case EPERM:
    case EISDIR:
        return error;
    default:
        return 0;
    }
}

/* What it means for a person who has a file in his hand, and never heard of SQLite. */
static const char *db_words(sqlite3 *db)
{
    int error = system_errno(db);

    if (error != 0)
        return strerror(error);
    switch (sqlite3_extended_errcode(db) & 0xff) {
    case SQLITE_NOTADB:
        return "this is not a journal";
    case SQLITE_CORRUPT:
        return "the journal is damaged";
    case SQLITE_CANTOPEN:
        return "no such journal, or it may not be opened";
    case SQLITE_IOERR:
        return "the journal cannot be read or written; is it whole, and the disk sound?";
    case SQLITE_FULL:
        return "the disk is full";
    case SQLITE_READONLY:
        return "it may not be written";
    case SQLITE_BUSY:
        return "another process has locked it";
    default:
        return sqlite3_errmsg(db);
    }
}

static int name_it(const struct journal *j, int r, struct err *e)
{
    return j->path ? err_prefix(e, r, "%s", j->path) : r;
}

int journal_error(struct journal *j, struct err *e)
{
    sqlite3 *db = j->db;
    int error = system_errno(db);

    return name_it(j,
                   err_set(e, error != 0 ? -error : to_errno(sqlite3_extended_errcode(db)), "%s",
                           db_words(db)),
                   e);
}

int journal_run(struct journal *j, const char *sql, struct err *e)
{
    return sqlite3_exec(j->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : journal_error(j, e);
}

int journal_number(struct journal *j, const char *sql, int64_t *ret, struct err *e)
{
    sqlite3_stmt *stmt = NULL;
    int r = 0;

    if (sqlite3_prepare_v2(j->db, sql, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        *ret = sqlite3_column_int64(stmt, 0);
    else
        r = journal_error(j, e);
    sqlite3_finalize(stmt);
    return r;
}

/* A version is there as a whole or not at all, wherever the writer is killed. */
static int migrate(struct journal *j, int from, struct err *e)
{
    for (int v = from; v < SCHEMA_VERSION; v++) {
        char version[96];
        int r;

        snprintf(version, sizeof(version),
                 "PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT", APPLICATION_ID, v + 1);
        r = journal_run(j, "BEGIN IMMEDIATE", e);
        if (r >= 0)
            r = journal_run(j, migrations[v], e);
        if (r >= 0)
            r = journal_run(j, version, e);
        if (r < 0) {
            sqlite3_exec(j->db, "ROLLBACK", NULL, NULL, NULL);
            return r;
        }
    }
    return 0;
}

/* Whether the file is a journal, and of which schema; a new file becomes one. */
static int check_schema(struct journal *j, enum journal_mode mode, struct err *e)
{
    int64_t id = 0, version = 0, tables = 0;
    int r = journal_number(j, "PRAGMA application_id", &id, e);

    if (r >= 0)
        r = journal_number(j, "PRAGMA user_version", &version, e);
    if (r >= 0)
        r = journal_number(j, "SELECT count(*) FROM sqlite_schema", &tables, e);
    if (r < 0)
        return r;
    if (id != APPLICATION_ID && (id != 0 || tables > 0))
        return err_set(e, -EBADMSG, "not a journal of reknit");
    if (version > SCHEMA_VERSION)
        return err_set(e, -EPROTO, "written by a newer release (schema %d, this one knows %d)",
                       (int)version, SCHEMA_VERSION);
    j->empty = version < 1 && mode != JOURNAL_WRITE;
    j->version = mode != JOURNAL_WRITE ? (int)version : SCHEMA_VERSION;
    return mode != JOURNAL_WRITE ? 0 : migrate(j, (int)version, e);
}

/* The name as a URI (sqlite.org/uri.html): what would mean something else is escaped. */
static void add_uri(struct strbuf *uri, const char *path)
{
    strbuf_adds(uri, "file:");
    for (; *path; path++) {
        if (strchr("%?#", *path))
            strbuf_addf(uri, "%%%02X", (unsigned)(unsigned char)*path);
        else
            strbuf_addc(uri, *path);
    }
}

/* A reader of a journal that nobody has open would leave files beside it; `immutable` does not.
 * While there is a writer, or after one was killed, the WAL is there and must be read. */
static bool has_wal(const char *path)
{
    _cleanup_(freep) char *wal = xasprintf("%s-wal", path);

    return access(wal, F_OK) == 0;
}

/* A FIFO would be waited for, and a device is no record: that is said before SQLite opens it. */
static int check_file(const char *path, enum journal_mode mode, struct err *e)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return mode == JOURNAL_WRITE && errno == ENOENT ? 0
                                                        : err_set(e, -errno, "%s", strerror(errno));
    if (S_ISDIR(st.st_mode))
        return err_set(e, -EISDIR, "%s", strerror(EISDIR));
    return S_ISREG(st.st_mode) ? 0 : err_set(e, -EBADMSG, "this is not a journal: no regular file");
}

static int open_file(struct journal *j, const char *path, enum journal_mode mode, struct err *e)
{
    _cleanup_strbuf_ struct strbuf uri = {0};
    int flags = SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, r = check_file(path, mode, e);

    if (r < 0)
        return r;
    add_uri(&uri, path);
    if (mode == JOURNAL_WRITE) {
        flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    } else {
        if (access(path, R_OK) < 0)
            return err_set(e, -errno, "%s", strerror(errno));
        flags |= SQLITE_OPEN_READONLY;
        if (mode == JOURNAL_READ && !has_wal(path))
            strbuf_adds(&uri, "?immutable=1");
    }
    if (sqlite3_open_v2(strbuf_str(&uri), &j->db, flags, NULL) != SQLITE_OK)
        return journal_error(j, e);
    sqlite3_busy_timeout(j->db, mode == JOURNAL_ASK ? BUSY_MS : OPEN_BUSY_MS);
    if (mode == JOURNAL_WRITE && sqlite3_db_readonly(j->db, "main") == 1)
        return err_set(e, -EACCES, "it may not be written");
    return 0;
}

static int prepare_writer(struct journal *j, struct err *e)
{
    static const char sql[] = "INSERT INTO event (seq, parent, time_us, kind, job, attempt, body)"
                              " VALUES (?, ?, ?, ?, ?, ?, ?)";

    if (sqlite3_prepare_v3(j->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &j->insert, NULL) !=
        SQLITE_OK)
        return journal_error(j, e);
    sqlite3_busy_timeout(j->db, BUSY_MS);
    return journal_run(j, "PRAGMA synchronous=NORMAL", e);
}

/* Numbers are given without a gap, from 1. A writer goes on behind what is noted, so the gap stays
 * to be seen. `noted` was read before the table: a commit in between is no loss. */
static int take_stock(struct journal *j, uint64_t noted, struct err *e)
{
    int64_t last = 0, n = 0, thinned = 0;
    int r = 0;

    if (!j->empty)
        r = journal_number(j, "SELECT coalesce(max(seq), 0) FROM event", &last, e);
    if (r >= 0 && !j->empty)
        r = journal_number(j, "SELECT count(*) FROM event", &n, e);
    if (r >= 0 && !j->empty && j->version >= 3)
        r = journal_number(j, "SELECT deleted FROM thinned", &thinned, e);
    if (r < 0)
        return r;
    n += thinned;
    j->last_seq = (uint64_t)last > noted ? (uint64_t)last : noted;
    j->lost = (uint64_t)n < j->last_seq ? j->last_seq - (uint64_t)n : 0;
    return 0;
}

/* A journal that was put aside, and another begun, between the two looks: the second is right. */
static int look_twice(struct journal *j, const char *path, struct err *e)
{
    int r = take_stock(j, high_water_read(path), e);

    return r >= 0 && j->lost > 0 ? take_stock(j, high_water_read(path), e) : r;
}

static int open_all(struct journal *j, const char *path, enum journal_mode mode, struct err *e)
{
    int r = open_file(j, path, mode, e);

    if (r >= 0 && mode == JOURNAL_WRITE)
        r = journal_run(j, "PRAGMA journal_mode=WAL; PRAGMA cache_size=-512", e);
    if (r >= 0)
        r = check_schema(j, mode, e);
    if (r >= 0 && mode != JOURNAL_ASK)
        r = look_twice(j, path, e);
    if (r >= 0 && mode == JOURNAL_WRITE)
        r = prepare_writer(j, e);
    if (r >= 0 && mode == JOURNAL_WRITE)
        j->high_water = high_water_create(path);
    return r;
}

int journal_use_memory(struct journal *j, unsigned mib, struct err *e)
{
    int64_t page = 0;
    char sql[96];
    int r = journal_number(j, "PRAGMA page_size", &page, e);

    if (r < 0)
        return r;
    STR_PRINTF(sql, "PRAGMA cache_size=-%u; PRAGMA wal_autocheckpoint=%" PRId64, mib << 10,
               ((int64_t)mib << 20) / page);
    return journal_run(j, sql, e);
}

int journal_open(const char *path, enum journal_mode mode, struct journal **ret, struct err *e)
{
    _cleanup_(journal_freep) struct journal *j = xnew(struct journal);
    int r;

    j->high_water = -1;
    r = open_all(j, path, mode, e);
    if (r < 0)
        return err_prefix(e, r, "%s", path);
    j->path = xstrdup(path);
    *ret = TAKE(j);
    return 0;
}

struct journal *journal_free(struct journal *j)
{
    if (!j)
        return NULL;
    sqlite3_finalize(j->insert);
    sqlite3_close(j->db);
    VEC_DONE(&j->kept);
    VEC_DONE(&j->last);
    closep(&j->high_water);
    free(j->path);
    free(j);
    return NULL;
}

const char *journal_path(const struct journal *j)
{
    return j->path;
}

bool journal_is_in_place(const struct journal *j)
{
    int moved = 0;

    return sqlite3_file_control(j->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK ||
           !moved;
}

uint64_t journal_last_seq(const struct journal *j)
{
    return j->last_seq;
}

uint64_t journal_lost(const struct journal *j)
{
    return j->lost;
}

struct journal_batch *journal_batch_new(void)
{
    return xnew(struct journal_batch);
}

static void batch_clear(struct journal_batch *b)
{
    VEC_FOREACH (&b->rows, row) {
        free(row->job);
        free(row->body);
    }
    b->rows.n = 0;
}

struct journal_batch *journal_batch_free(struct journal_batch *b)
{
    if (!b)
        return NULL;
    batch_clear(b);
    VEC_DONE(&b->rows);
    free(b);
    return NULL;
}

void journal_batch_add(struct journal_batch *b, const struct event *e)
{
    assert(e->seq > 0);
    *VEC_PUSH(&b->rows) = (struct row){.seq = e->seq,
                                       .parent = e->parent,
                                       .time_us = e->time_us,
                                       .kind = e->kind,
                                       .attempt = e->attempt,
                                       .job = xstrdup(e->job),
                                       .body = codec_encode(e)};
}

size_t journal_batch_size(const struct journal_batch *b)
{
    return b->rows.n;
}

static int insert_row(struct journal *j, const struct row *row, struct err *e)
{
    sqlite3_stmt *s = j->insert;
    int r = 0;

    sqlite3_bind_int64(s, 1, (int64_t)row->seq);
    sqlite3_bind_int64(s, 2, (int64_t)row->parent);
    sqlite3_bind_int64(s, 3, row->time_us);
    sqlite3_bind_text(s, 4, event_kind_name(row->kind), -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 5, row->job, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 6, row->attempt);
    sqlite3_bind_text(s, 7, row->body, -1, SQLITE_STATIC);
    if (sqlite3_step(s) != SQLITE_DONE)
        r = journal_error(j, e);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return r;
}

static int set_durable(struct journal *j, bool full, struct err *e)
{
    int r;

    if (j->full == full)
        return 0;
    r = journal_run(j, full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", e);
    if (r >= 0)
        j->full = full;
    return r;
}

static int insert_all(struct journal *j, const struct journal_batch *b, struct err *e)
{
    int r = journal_run(j, "BEGIN IMMEDIATE", e);

    if (r < 0)
        return r;
    for (size_t i = 0; i < b->rows.n && r >= 0; i++)
        r = insert_row(j, &b->rows.v[i], e);
    if (r >= 0)
        r = journal_run(j, "COMMIT", e);
    if (r < 0 && !sqlite3_get_autocommit(j->db))
        sqlite3_exec(j->db, "ROLLBACK", NULL, NULL, NULL);
    return r;
}

int journal_commit(struct journal *j, struct journal_batch *b, bool durable, struct err *e)
{
    int r;

    if (b->rows.n == 0)
        return 0;
    r = set_durable(j, durable, e);
    if (r >= 0)
        r = insert_all(j, b, e);
    if (r < 0)
        return r;
    j->last_seq = b->rows.v[b->rows.n - 1].seq;
    high_water_note(j->high_water, j->last_seq);
    batch_clear(b);
    return 0;
}

/* The words for a choice; what comes from outside is bound, not written into it. */
static void choice_sql(const struct journal_choice *c, struct strbuf *sql)
{
    uint64_t frequent = UINT64_C(1) << EVENT_SIGNAL | UINT64_C(1) << EVENT_TICK;
    bool job = c->job || c->id;

    strbuf_adds(sql, "SELECT seq, parent, time_us, kind, job, attempt, body FROM event"
                     " WHERE seq > ?1 AND seq < ?2");
    if (c->job)
        strbuf_adds(sql, " AND job = ?3");
    if (c->id)
        strbuf_adds(sql, " AND job > ?3 || '-' AND job < ?3 || '.'");
    if (c->kinds != 0) {
        const char *sep = " AND kind IN (";

        for (int k = 0; k < EVENT_MAX; k++)
            if (c->kinds & UINT64_C(1) << k) {
                strbuf_addf(sql, "%s'%s'", sep, event_kind_name((enum event_kind)k));
                sep = ",";
            }
        strbuf_addc(sql, ')');
        /* In the words of the index, or it is not used; for several kinds, it would sort. */
        if ((c->kinds & frequent) == 0 && !job && (c->kinds & (c->kinds - 1)) == 0)
            strbuf_adds(sql, " AND kind <> 'signal' AND kind <> 'tick'");
    }
    if (c->ended_before > 0)
        strbuf_adds(sql, " AND job NOT IN (SELECT e.job FROM event AS e WHERE e.kind = 'job-ended'"
                         " AND e.kind <> 'signal' AND e.kind <> 'tick' AND e.time_us < ?4 AND NOT"
                         " EXISTS (SELECT 1 FROM event AS l WHERE l.job = e.job AND l.seq > e.seq"
                         " AND l.kind IN ('job-seen', 'attempt-started')))");
    strbuf_adds(sql, c->newest_first ? " ORDER BY seq DESC" : " ORDER BY seq");
}

int journal_select(struct journal *j, const struct journal_choice *c, struct journal_cursor **ret,
                   struct err *e)
{
    _cleanup_strbuf_ struct strbuf sql = {0};
    const char *job = c->job ? c->job : c->id;
    sqlite3_stmt *select = NULL;

    assert(!(c->job && c->id) && c->kinds >> EVENT_MAX == 0);
    choice_sql(c, &sql);
    if (!j->empty && sqlite3_prepare_v2(j->db, strbuf_str(&sql), -1, &select, NULL) != SQLITE_OK)
        return journal_error(j, e);
    if (select) {
        sqlite3_bind_int64(select, 1, (int64_t)c->after);
        sqlite3_bind_int64(select, 2, c->below > 0 ? (int64_t)c->below : INT64_MAX);
        if (c->ended_before > 0)
            sqlite3_bind_int64(select, 4, c->ended_before);
        if (job)
            sqlite3_bind_text(select, 3, job, -1, SQLITE_TRANSIENT);
    }
    *ret = xnew(struct journal_cursor);
    (*ret)->journal = j;
    (*ret)->select = select;
    return 0;
}

int journal_read(struct journal *j, uint64_t after, struct journal_cursor **ret, struct err *e)
{
    return journal_select(j, &(struct journal_choice){.after = after}, ret, e);
}

struct journal_cursor *journal_cursor_free(struct journal_cursor *c)
{
    if (!c)
        return NULL;
    sqlite3_finalize(c->select);
    free(c);
    return NULL;
}

static const char *text_column(sqlite3_stmt *s, int i)
{
    const char *text = (const char *)sqlite3_column_text(s, i);

    return text ? text : "";
}

static int decode_row(const struct journal *j, sqlite3_stmt *s, struct event *ret, struct err *e)
{
    int64_t attempt = sqlite3_column_int64(s, 5);
    int r;

    memset(ret, 0, sizeof(*ret));
    ret->seq = (uint64_t)sqlite3_column_int64(s, 0);
    ret->parent = (uint64_t)sqlite3_column_int64(s, 1);
    ret->time_us = sqlite3_column_int64(s, 2);
    ret->kind = event_kind_from_name(text_column(s, 3));
    STR_COPY(ret->job, text_column(s, 4));
    ret->attempt = attempt >= 0 && attempt <= ATTEMPT_MAX ? (uint32_t)attempt : UINT32_MAX;
    if ((int)ret->kind < 0)
        r = err_set(e, -EBADMSG, "this release does not know its kind '%s'", text_column(s, 3));
    else
        r = codec_decode(text_column(s, 6), ret, e);
    if (r >= 0 && !event_is_sane(ret))
        r = codec_refuse_numbers(e);
    return r < 0 ? err_prefix(e, r, "%s: event %" PRIu64, j->path, ret->seq) : 1;
}

int journal_next(struct journal_cursor *c, struct event *ret, struct err *e)
{
    if (!c->select)
        return 0;
    switch (sqlite3_step(c->select)) {
    case SQLITE_ROW:
        return decode_row(c->journal, c->select, ret, e);
    case SQLITE_DONE:
        return 0;
    default:
        return journal_error(c->journal, e);
    }
}

int journal_each(struct journal *j, uint64_t after,
                 void (*fn)(void *ctx, const struct event *event), void *ctx, struct err *e)
{
    return journal_each_of(j, &(struct journal_choice){.after = after}, fn, ctx, e);
}

int journal_each_of(struct journal *j, const struct journal_choice *c,
                    void (*fn)(void *ctx, const struct event *event), void *ctx, struct err *e)
{
    _cleanup_(journal_cursor_freep) struct journal_cursor *cursor = NULL;
    _cleanup_(freep) struct event *event = xnew(struct event);
    int r = journal_select(j, c, &cursor, e);

    while (r >= 0 && (r = journal_next(cursor, event, e)) > 0)
        fn(ctx, event);
    return r;
}
