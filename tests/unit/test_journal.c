/* SPDX-License-Identifier: Apache-2.0 */

/* The journal: what goes in comes out, in canonical form; it is append-only, survives a writer that
 * ends without closing, and refuses what it does not understand. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/str.h"
#include "core/model/event_fields.h"
#include "wire/codec.h"
#include "core/core.h"
#include "core/state/state.h"
#include "journal/journal.h"
#include "journal/thin.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];
static char path[128];

static int make_folder(void **state)
{
    (void)state;
    STR_COPY(folder, "/tmp/reknit-test-journal-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/a?b%%c#d.db", folder); /* characters that a URI would take */
    return 0;
}

static int remove_folder(void **state)
{
    static const char *const files[] = {"", "-wal", "-shm", "-last", "-x"};
    char name[160];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        snprintf(name, sizeof(name), "%s%s", path, files[i]);
        unlink(name);
    }
    return rmdir(folder);
}

/* Values of every kind, told apart by where they stand. */
static int64_t number_for(const struct field *f, uint32_t seed)
{
    switch (f->type) {
    case FIELD_BOOL:
        return f->absent ? 0 : 1;
    case FIELD_I32:
        return -7 - (int64_t)(seed % 1000);
    case FIELD_U32:
        return 4000000000 + seed % 1000;
    case FIELD_I64:
        return INT64_MIN + 2 + seed;
    case FIELD_U64:
        return INT64_MAX - seed;
    case FIELD_ENUM:
        return f->enum_name(1) ? 1 : 0; /* some have one word only */
    default:
        return 0;
    }
}

static void fill(const struct field *fields, void *object, uint32_t *seed);

static void fill_element(const struct field *f, void *at, uint32_t *seed)
{
    int64_t v = number_for(f, ++*seed);

    switch (f->type) {
    case FIELD_BOOL:
        *(bool *)at = v != 0;
        break;
    case FIELD_I32:
    case FIELD_ENUM:
        *(int32_t *)at = (int32_t)v;
        break;
    case FIELD_U32:
        *(uint32_t *)at = (uint32_t)v;
        break;
    case FIELD_I64:
        *(int64_t *)at = v;
        break;
    case FIELD_U64:
        *(uint64_t *)at = (uint64_t)v;
        break;
    case FIELD_TEXT:
        snprintf(at, f->size, "t%u \"\\ \xc3\xa4", *seed);
        break;
    default:
        fill(f->sub, at, seed);
    }
}

static bool is_kind(const struct field *f)
{
    return f->type == FIELD_ENUM && streq(f->name, "kind");
}

/* Leaves selectors of unions as they are: they were set by whoever calls. */
static void fill(const struct field *fields, void *object, uint32_t *seed)
{
    for (const struct field *f = fields; !fields_end(f); f++) {
        const struct field *g = f->type == FIELD_UNION ? field_variant(f, object) : f;
        uint32_t n;

        if (!g || is_kind(g))
            continue;
        n = g->max ? g->max : 1;
        if (g->max && !g->index_name)
            memcpy((char *)object + g->count, &n, sizeof(n));
        for (uint32_t i = 0; i < n; i++)
            fill_element(g, FIELD_AT(object, g, i), seed);
    }
}

static void check_round_trip(const struct event *e)
{
    struct event *back = xnew(struct event);
    char where[96], *text = codec_encode(e), *again;
    struct err err = {0};

    memcpy(back, e, offsetof(struct event, policy));
    assert_int_equal(codec_decode(text, back, &err), 0);
    assert_string_equal(event_differs(e, back, where), "");
    again = codec_encode(back);
    assert_string_equal(text, again);
    free(text);
    free(again);
    free(back);
}

static void every_member_survives(void **state)
{
    (void)state;
    for (int kind = 0; kind < EVENT_MAX; kind++)
        for (int variant = 0; variant < (kind == EVENT_SIGNAL ? SIGNAL_MAX : 1); variant++) {
            struct event *e = xnew(struct event);
            uint32_t seed = 0;

            e->kind = (enum event_kind)kind;
            if (kind == EVENT_SIGNAL)
                e->signal = signal_make((enum signal_kind)variant, PROVENANCE_JOB_TEXT);
            fill(event_fields, e, &seed);
            check_round_trip(e);
            free(e);
        }
}

static void an_empty_event_is_short_and_survives(void **state)
{
    (void)state;
    for (int variant = 0; variant < SIGNAL_MAX; variant++) {
        struct event *e = xnew(struct event);
        char *text;

        e->kind = EVENT_SIGNAL;
        e->signal = signal_make((enum signal_kind)variant, PROVENANCE_JOB_TEXT);
        text = codec_encode(e);
        assert_true(strlen(text) < 112);
        free(text);
        check_round_trip(e);
        free(e);
    }
}

/* Also of the kind, and of what it is about, whose word is the first of its enum. */
static void what_programs_read_says_what_it_is(void **state)
{
    static const struct {
        enum event_kind kind;
        const char *body, *word;
    } cases[] = {
        {EVENT_SIGNAL, "signal", "kind"},       {EVENT_RESULT, "result", "outcome"},
        {EVENT_OPERATOR, "request", "request"}, {EVENT_MODE, "mode", "mode"},
        {EVENT_FINDING, "finding", "finding"},  {EVENT_VERDICT, "incident", "class"},
        {EVENT_INTENT, "intended", "intent"},   {EVENT_DECISION, "decision", "mode"},
        {EVENT_NODE_FACT, "fact", "isolation"},
    };
    struct event *e = xnew(struct event);

    for (int kind = 0; kind < EVENT_MAX; kind++) {
        json_t *j;

        memset(e, 0, sizeof(*e));
        e->kind = (enum event_kind)kind;
        j = codec_event_json(e);
        assert_string_equal(json_string_value(json_object_get(j, "kind")),
                            event_kind_name(e->kind));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
            if (cases[i].kind == e->kind)
                assert_non_null(json_object_get(json_object_get(j, cases[i].body), cases[i].word));
        json_decref(j);
    }
    free(e);
}

static void json_is_canonical(void **state)
{
    struct event *e = xnew(struct event);
    char *text;

    (void)state;
    e->kind = EVENT_ATTEMPT_STARTED;
    e->started.pid = 7;
    STR_COPY(e->started.log, "/x/\xc3\xa4\"\n");
    text = codec_encode(e);
    assert_string_equal(text, "{\"log\":\"/x/\xc3\xa4\\\"\\n\",\"pid\":7}");
    free(text);
    free(e);
}

static void what_is_not_known_is_refused_or_ignored(void **state)
{
    static const struct {
        const char *json;
        int result;
        const char *complaint;
    } cases[] = {
        {"{\"pid\":1,\"later\":[1,{}]}", 0, NULL},
        {"{}", 0, NULL},
        {"", -EBADMSG, "JSON"},
        {"[]", -EBADMSG, "JSON"},
        {"{\"pid\":\"1\"}", -EBADMSG, "'pid'"},
        {"{\"pid\":1.5}", -EBADMSG, "'pid'"},
        {"{\"intent\":-1}", -EBADMSG, "'intent'"},
        {"{\"log\":3}", -EBADMSG, "'log'"},
    };
    struct event *e = xnew(struct event);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err err = {0};

        e->kind = EVENT_ATTEMPT_STARTED;
        assert_int_equal(codec_decode(cases[i].json, e, &err), cases[i].result);
        if (cases[i].complaint)
            assert_non_null(strstr(err.text, cases[i].complaint));
    }
    e->kind = EVENT_INTENT;
    assert_int_equal(codec_decode("{\"intent\":\"launch-rockets\"}", e, NULL), -EBADMSG);
    free(e);
}

static struct journal *open_journal(enum journal_mode mode)
{
    struct journal *j = NULL;
    struct err e = {0};

    if (journal_open(path, mode, &j, &e) < 0)
        fail_msg("%s", e.text);
    return j;
}

static void append(struct journal *j, uint64_t first, size_t n, bool durable)
{
    struct journal_batch *b = journal_batch_new();
    struct event *e = xnew(struct event);
    struct err err = {0};

    e->kind = EVENT_SIGNAL;
    STR_COPY(e->job, "j");
    e->signal = signal_make(SIGNAL_STEP, PROVENANCE_JOB_TEXT);
    for (size_t i = 0; i < n; i++) {
        e->seq = first + i;
        e->time_us = (usec_t)(1000 * (first + i));
        e->signal.step.step = (int64_t)(first + i);
        journal_batch_add(b, e);
    }
    assert_int_equal(journal_batch_size(b), n);
    assert_int_equal(journal_commit(j, b, durable, &err), 0);
    assert_int_equal(journal_batch_size(b), 0);
    free(e);
    journal_batch_free(b);
}

static size_t count_from(struct journal *j, uint64_t after)
{
    struct journal_cursor *c = NULL;
    struct event *e = xnew(struct event);
    size_t n = 0;

    assert_int_equal(journal_read(j, after, &c, NULL), 0);
    while (journal_next(c, e, NULL) == 1) {
        n++;
        assert_int_equal(e->seq, after + n);
        assert_int_equal(e->signal.step.step, (int64_t)e->seq);
        assert_int_equal(e->time_us, (usec_t)(1000 * e->seq));
        assert_string_equal(e->job, "j");
    }
    journal_cursor_free(c);
    free(e);
    return n;
}

static void events_come_back_in_order(void **state)
{
    struct journal *j = open_journal(JOURNAL_WRITE), *reader;

    (void)state;
    assert_int_equal(journal_last_seq(j), 0);
    append(j, 1, 10, false);
    append(j, 11, 5, true);
    append(j, 16, 1, false);
    assert_int_equal(journal_last_seq(j), 16);
    reader = open_journal(JOURNAL_READ); /* while it is being written */
    assert_int_equal(count_from(reader, 0), 16);
    assert_int_equal(count_from(reader, 12), 4);
    assert_int_equal(count_from(reader, 16), 0);
    journal_free(reader);
    journal_free(j);
    j = open_journal(JOURNAL_WRITE);
    assert_int_equal(journal_last_seq(j), 16);
    assert_int_equal(count_from(j, 0), 16);
    journal_free(j);
}

static void a_writer_that_is_killed_loses_nothing(void **state)
{
    struct journal *j;
    pid_t pid = fork();
    int status;

    (void)state;
    if (pid == 0) {
        j = open_journal(JOURNAL_WRITE);
        append(j, 1, 20, false);
        _exit(0); /* no clean-up: the WAL stays behind */
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    j = open_journal(JOURNAL_READ);
    assert_int_equal(count_from(j, 0), 20);
    journal_free(j);
}

static void write_and_die(uint64_t first, size_t n)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        struct journal *j = open_journal(JOURNAL_WRITE);

        for (size_t i = 0; i < n; i++)
            append(j, first + i, 1, false);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void expect_lost(enum journal_mode mode, uint64_t last, uint64_t lost)
{
    struct journal *j = open_journal(mode);

    assert_int_equal(journal_last_seq(j), last);
    assert_int_equal(journal_lost(j), lost);
    journal_free(j);
}

static void damage_wal(off_t at)
{
    char wal[160];
    int fd;

    snprintf(wal, sizeof(wal), "%s-wal", path);
    fd = open(wal, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "XXXX", 4, at), 4);
    close(fd);
}

static void what_a_damaged_log_takes_away_is_told(void **state)
{
    struct journal *j;
    char wal[160];
    struct stat st;

    (void)state;
    write_and_die(1, 20);
    expect_lost(JOURNAL_READ, 20, 0);
    snprintf(wal, sizeof(wal), "%s-wal", path);
    assert_int_equal(stat(wal, &st), 0);
    damage_wal(st.st_size - 100); /* in the last commit */
    expect_lost(JOURNAL_READ, 20, 1);
    damage_wal(100); /* in the first frame: nothing is left */
    expect_lost(JOURNAL_READ, 20, 20);
    j = open_journal(JOURNAL_WRITE);
    assert_int_equal(journal_last_seq(j), 20); /* no number is given twice */
    append(j, 21, 4, true);
    journal_free(j);
    expect_lost(JOURNAL_READ, 24, 20);
}

static void a_missing_log_is_told(void **state)
{
    char wal[160];

    (void)state;
    journal_free(open_journal(JOURNAL_WRITE));
    write_and_die(1, 3);
    snprintf(wal, sizeof(wal), "%s-wal", path);
    assert_int_equal(unlink(wal), 0);
    expect_lost(JOURNAL_READ, 3, 3);
    expect_lost(JOURNAL_WRITE, 3, 3);
}

static void an_unreadable_note_is_none(void **state)
{
    static const char *const notes[] = {"", "7", "00000000000000000x\n", "-00000000000000009\n"};
    char note[160];
    FILE *f;

    (void)state;
    write_and_die(1, 2);
    snprintf(note, sizeof(note), "%s-last", path);
    for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
        f = fopen(note, "w");
        assert_non_null(f);
        fputs(notes[i], f);
        fclose(f);
        expect_lost(JOURNAL_READ, 2, 0);
    }
}

static void a_reader_leaves_no_files_behind(void **state)
{
    char side[160];
    struct journal *j = open_journal(JOURNAL_WRITE);

    (void)state;
    append(j, 1, 3, true);
    journal_free(j);
    j = open_journal(JOURNAL_READ);
    assert_int_equal(count_from(j, 0), 3);
    journal_free(j);
    for (size_t i = 0; i < 2; i++) {
        snprintf(side, sizeof(side), "%s%s", path, i ? "-wal" : "-shm");
        assert_int_equal(access(side, F_OK), -1);
    }
}

static void run_sql(const char *sql, int expected)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), expected);
    sqlite3_close(db);
}

static void it_is_append_only(void **state)
{
    struct journal *j = open_journal(JOURNAL_WRITE);
    struct journal_batch *b = journal_batch_new();
    struct event *e = xnew(struct event);

    (void)state;
    append(j, 1, 3, true);
    run_sql("DELETE FROM event WHERE seq = 2", SQLITE_CONSTRAINT);
    run_sql("UPDATE event SET time_us = 0", SQLITE_CONSTRAINT);
    e->seq = 2; /* exists */
    e->kind = EVENT_TICK;
    journal_batch_add(b, e);
    assert_true(journal_commit(j, b, true, NULL) < 0);
    assert_int_equal(journal_batch_size(b), 1);
    assert_int_equal(journal_last_seq(j), 3);
    assert_int_equal(count_from(j, 0), 3);
    free(e);
    journal_batch_free(b);
    journal_free(j);
}

/* Whoever waits in a loop is told at once, and loses nothing. */
static void a_lock_of_another_is_not_waited_for(void **state)
{
    struct journal *j = open_journal(JOURNAL_WRITE);
    struct journal_batch *b = journal_batch_new();
    struct event *e = xnew(struct event);
    struct err err = {0};
    sqlite3 *other = NULL;
    usec_t before;

    append(j, 1, 1, true);
    e->seq = 2;
    e->kind = EVENT_TICK;
    journal_batch_add(b, e);
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    before = mono_us();
    assert_int_equal(journal_commit(j, b, true, &err), -EBUSY);
    assert_true(mono_us() - before < 3 * USEC_PER_SEC); /* less than it was once */
    assert_memory_equal(err.text, path, strlen(path));  /* whose error it is */
    assert_string_equal(err.text + strlen(path), ": another process has locked it");
    assert_int_equal(journal_batch_size(b), 1);
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    assert_int_equal(journal_commit(j, b, true, &err), 0);
    assert_int_equal(journal_last_seq(j), 2);
    free(e);
    journal_batch_free(b);
    journal_free(j);
}

static void expect_refusal(enum journal_mode mode, int code, const char *complaint)
{
    struct journal *j = NULL;
    struct err e = {0};

    assert_int_equal(journal_open(path, mode, &j, &e), code);
    assert_null(j);
    assert_non_null(strstr(e.text, complaint));
    assert_non_null(strstr(e.text, path));
}

static void other_files_are_refused(void **state)
{
    int fd;

    (void)state;
    expect_refusal(JOURNAL_READ, -ENOENT, "No such file");
    fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(write(fd, "this is a log, not a journal\n", 29) == 29);
    close(fd);
    expect_refusal(JOURNAL_READ, -EBADMSG, "not a journal");
    expect_refusal(JOURNAL_WRITE, -EBADMSG, "not a journal");
    unlink(path);
    run_sql("CREATE TABLE other (x)", SQLITE_OK);
    expect_refusal(JOURNAL_READ, -EBADMSG, "not a journal");
    expect_refusal(JOURNAL_WRITE, -EBADMSG, "not a journal");
}

static void a_newer_schema_is_refused(void **state)
{
    (void)state;
    journal_free(open_journal(JOURNAL_WRITE));
    run_sql("PRAGMA user_version = 1000", SQLITE_OK);
    expect_refusal(JOURNAL_READ, -EPROTO, "newer release");
    expect_refusal(JOURNAL_WRITE, -EPROTO, "newer release");
}

static void commit_of(struct journal *j, uint64_t seq, enum event_kind kind, const char *job)
{
    _cleanup_(journal_batch_freep) struct journal_batch *b = journal_batch_new();
    struct event *e = xnew(struct event);

    *e = (struct event){.seq = seq, .time_us = (usec_t)seq, .kind = kind};
    STR_COPY(e->job, job);
    journal_batch_add(b, e);
    assert_int_equal(journal_commit(j, b, false, NULL), 0);
    free(e);
}

/* "3 5 " */
static const char *chosen(struct journal *j, const struct journal_choice *choice)
{
    static char text[128];
    struct journal_cursor *c = NULL;
    struct event *e = xnew(struct event);
    size_t n = 0;

    text[0] = '\0';
    assert_int_equal(journal_select(j, choice, &c, NULL), 0);
    while (journal_next(c, e, NULL) > 0)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%d ", (int)e->seq);
    journal_cursor_free(c);
    free(e);
    return text;
}

#define BIT(kind) (UINT64_C(1) << (kind))

static void events_are_chosen_by_job_kind_and_place(void **state)
{
    struct journal *w = open_journal(JOURNAL_WRITE), *j;

    (void)state;
    commit_of(w, 1, EVENT_JOB_SEEN, "42-100");
    commit_of(w, 2, EVENT_SIGNAL, "42-100");
    j = open_journal(JOURNAL_ASK);
    commit_of(w, 3, EVENT_JOB_SEEN, "421-7");
    commit_of(w, 4, EVENT_TICK, "");
    commit_of(w, 5, EVENT_JOB_SEEN, "42-200"); /* after it was opened: seen all the same */
    commit_of(w, 6, EVENT_VERDICT, "42-100");

#define CHOOSE(...) chosen(j, &(struct journal_choice){__VA_ARGS__})
    assert_string_equal(CHOOSE(.after = 0), "1 2 3 4 5 6 ");
    assert_string_equal(CHOOSE(.after = 1, .below = 5), "2 3 4 ");
    assert_string_equal(CHOOSE(.job = "42-100"), "1 2 6 ");
    assert_string_equal(CHOOSE(.job = "42-100", .kinds = BIT(EVENT_SIGNAL)), "2 ");
    assert_string_equal(CHOOSE(.job = "42"), "");
    assert_string_equal(CHOOSE(.id = "42", .kinds = BIT(EVENT_JOB_SEEN), .newest_first = true),
                        "5 1 ");
    assert_string_equal(CHOOSE(.id = "4"), "");
    assert_string_equal(CHOOSE(.job = "' OR 1 --"), "");
    assert_string_equal(CHOOSE(.kinds = BIT(EVENT_JOB_SEEN), .newest_first = true), "5 3 1 ");
    assert_string_equal(CHOOSE(.kinds = BIT(EVENT_JOB_SEEN) | BIT(EVENT_VERDICT)), "1 3 5 6 ");
    journal_free(j);
    journal_free(w);
}

static void a_journal_that_was_hardly_begun_is_empty(void **state)
{
    struct journal *j;
    int fd = open(path, O_WRONLY | O_CREAT, 0600);

    (void)state;
    close(fd); /* the writer was killed between creating the file and the first table */
    j = open_journal(JOURNAL_READ);
    assert_int_equal(journal_last_seq(j), 0);
    assert_int_equal(count_from(j, 0), 0);
    journal_free(j);
    j = open_journal(JOURNAL_WRITE);
    append(j, 1, 1, true);
    journal_free(j);
}

/* A damaged file, or a forged one. */
static void numbers_out_of_range_are_refused(void **state)
{
    static const char *const rows[] = {
        "0, 9223372036854775807, 'attempt-exited', 'j', 1, '{}'",
        "0, -1, 'attempt-exited', 'j', 1, '{}'",
        "0, 5, 'attempt-exited', 'j', 4294967297, '{}'",
        "0, 5, 'attempt-exited', 'j', -1, '{}'",
        "-1, 5, 'attempt-exited', 'j', 1, '{}'",
        "0, 5, 'signal', 'j', 1, '{\"kind\":\"step\",\"step\":{\"step\":9223372036854775806}}'",
        "0, 5, 'signal', 'j', 1, '{\"kind\":\"step\",\"step\":{\"duration\":9223372036854775806}}'",
        "0, 5, 'signal', 'j', 1, '{\"kind\":\"hit\",\"time_us\":9223372036854775806}'",
    };
    struct event *e = xnew(struct event);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(freep) char *sql = xasprintf("INSERT INTO event VALUES (2, %s)", rows[i]);
        struct journal *j = open_journal(JOURNAL_WRITE);
        struct journal_cursor *c = NULL;
        struct err err = {0};

        append(j, 1, 1, true);
        journal_free(j);
        run_sql(sql, SQLITE_OK);
        j = open_journal(JOURNAL_READ);
        assert_int_equal(journal_read(j, 0, &c, NULL), 0);
        assert_int_equal(journal_next(c, e, &err), 1);
        assert_int_equal(journal_next(c, e, &err), -EBADMSG);
        if (!strstr(err.text, "event 2: one of its numbers"))
            fail_msg("%s: %s", rows[i], err.text);
        journal_cursor_free(c);
        journal_free(j);
        unlink(path);
    }
    free(e);
}

/* In a child: a limit on the size of files stands for the full disk. */
static void fill_up(void)
{
    struct rlimit limit = {.rlim_cur = 65536, .rlim_max = 65536};
    struct journal *j = open_journal(JOURNAL_WRITE);
    struct journal_batch *b = journal_batch_new();
    struct event *e = xnew(struct event);
    struct err err = {0};
    uint64_t committed = 0;
    int r = 0;

    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    e->kind = EVENT_RESULT;
    memset(e->result.detail, 'x', sizeof(e->result.detail) - 1);
    while (r == 0 && committed < 10000) {
        e->seq = committed + 1;
        journal_batch_add(b, e);
        r = journal_commit(j, b, true, &err);
        committed += r == 0;
    }
    if (r == 0 || journal_batch_size(b) != 1 || journal_last_seq(j) != committed)
        _exit(1);
    _exit(committed > 0 ? 0 : 2);
}

static void a_full_disk_is_an_error_and_no_loss(void **state)
{
    struct journal *j;
    struct journal_cursor *c = NULL;
    struct event *e = xnew(struct event);
    uint64_t n = 0, last;
    pid_t pid = fork();
    int status;

    (void)state;
    if (pid == 0)
        fill_up();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    j = open_journal(JOURNAL_WRITE);
    last = journal_last_seq(j);
    assert_true(last > 0);
    assert_int_equal(journal_read(j, 0, &c, NULL), 0);
    while (journal_next(c, e, NULL) == 1)
        n++;
    assert_int_equal(n, last);
    journal_cursor_free(c);
    append(j, last + 1, 1, true); /* there is room again */
    journal_free(j);
    free(e);
}

/* A year of a site, in small: jobs that ended long ago, and one that still runs. */
#define DAY_0 ((usec_t)1767225600 * USEC_PER_SEC)

struct site {
    struct journal *j;
    struct journal_batch *batch;
    struct event e;
    uint64_t seq;
    usec_t now;
};

static void site_add(struct site *s, enum event_kind kind, const char *job, uint32_t attempt)
{
    s->e.kind = kind;
    s->e.seq = ++s->seq;
    s->e.time_us = s->now;
    s->e.attempt = attempt;
    STR_COPY(s->e.job, job);
    journal_batch_add(s->batch, &s->e);
    s->e = (struct event){0};
    if (journal_batch_size(s->batch) >= 500)
        assert_int_equal(journal_commit(s->j, s->batch, false, NULL), 0);
}

static void site_steps(struct site *s, const char *job, uint32_t attempt, int n, usec_t every)
{
    for (int i = 0; i < n; i++) {
        s->now += every + i % 7 * USEC_PER_MSEC;
        s->e.signal = signal_make(SIGNAL_STEP, PROVENANCE_JOB_TEXT);
        STR_COPY(s->e.signal.signature, "progress.step");
        s->e.signal.step.step = i + 1;
        site_add(s, EVENT_SIGNAL, job, attempt);
        if (i % 100 == 50) {
            s->e.signal = signal_make(SIGNAL_HIT, PROVENANCE_JOB_TEXT);
            STR_COPY(s->e.signal.signature, i % 200 == 50 ? "a.rare" : "a.frequent");
            s->e.signal.role = ROLE_SYMPTOM;
            site_add(s, EVENT_SIGNAL, job, attempt);
        }
        if (i % 10 == 0)
            site_add(s, EVENT_TICK, "", 0);
    }
}

static void site_begin(struct site *s, const char *job)
{
    s->e.seen.scheduled = true;
    site_add(s, EVENT_JOB_SEEN, job, 0);
    s->e.look = (struct look_facts){.state = SCHED_RUNNING};
    site_add(s, EVENT_LOOK, job, 1);
    site_add(s, EVENT_ATTEMPT_STARTED, job, 1);
}

static void site_end(struct site *s, const char *job, uint32_t attempt)
{
    s->e.exited.code = 0;
    site_add(s, EVENT_ATTEMPT_EXITED, job, attempt);
    site_add(s, EVENT_ATTEMPT_GONE, job, attempt);
    s->e.incident.class = CLASS_HEALTHY;
    site_add(s, EVENT_VERDICT, job, attempt);
    s->e.decision.action = ACTION_COMPLETE;
    s->e.decision.after_step = STEP_NONE;
    site_add(s, EVENT_DECISION, job, attempt);
    s->e.ended.action = ACTION_COMPLETE;
    site_add(s, EVENT_JOB_ENDED, job, attempt);
}

/* The linker puts it before the real one: the most that a statement has worked, in operations of
 * SQLite's machine. */
static int most_work;
int __real_sqlite3_finalize(sqlite3_stmt *s);
int __wrap_sqlite3_finalize(sqlite3_stmt *s);

int __wrap_sqlite3_finalize(sqlite3_stmt *s)
{
    int work = s ? sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 0) : 0;

    most_work = work > most_work ? work : most_work;
    return __real_sqlite3_finalize(s);
}

static void site_fill(struct site *s)
{
    *s =
        (struct site){.j = open_journal(JOURNAL_WRITE), .batch = journal_batch_new(), .now = DAY_0};
    site_begin(s, "1-1");
    site_steps(s, "1-1", 1, 300, USEC_PER_SEC);
    site_end(s, "1-1", 1);
    s->now += 10 * USEC_PER_DAY;
    site_begin(s, "2-2");
    site_steps(s, "2-2", 1, 50, USEC_PER_SEC);
    site_end(s, "2-2", 1);
    s->now += 20 * USEC_PER_DAY;
    site_begin(s, "3-3");
    site_steps(s, "3-3", 1, 3000, 20 * USEC_PER_SEC);
    s->now += USEC_PER_MIN; /* its user requeued it */
    s->e.exited.code = -1;
    site_add(s, EVENT_ATTEMPT_EXITED, "3-3", 1);
    site_add(s, EVENT_FINDING, "3-3", 1);
    s->e.finding.finding = FINDING_CRASH;
    site_add(s, EVENT_INTERRUPTED, "3-3", 1);
    s->e.incident.class = CLASS_CRASH;
    site_add(s, EVENT_VERDICT, "3-3", 1);
    s->e.decision.action = ACTION_RESTART;
    s->e.decision.after_step = STEP_NONE;
    site_add(s, EVENT_DECISION, "3-3", 1);
    s->e.look = (struct look_facts){.state = SCHED_RUNNING, .restarts = 1};
    site_add(s, EVENT_LOOK, "3-3", 2);
    site_add(s, EVENT_ATTEMPT_STARTED, "3-3", 2);
    site_steps(s, "3-3", 2, 9000, 30 * USEC_PER_SEC);
    assert_int_equal(journal_commit(s->j, s->batch, true, NULL), 0);
    s->batch = journal_batch_free(s->batch);
}

static struct journal_keep site_keep(const struct site *s)
{
    return (struct journal_keep){
        .now = s->now, .detail = USEC_PER_DAY, .newest = 1000000, .ended = 25 * USEC_PER_DAY};
}

static void fold_one(void *ctx, const struct event *e)
{
    core_fold(ctx, e);
}

static struct core *fold_all(struct journal *j)
{
    struct core *core = core_new();

    assert_int_equal(journal_each(j, 0, fold_one, core, NULL), 0);
    return core;
}

static size_t count_of(struct journal *j, const char *job)
{
    struct journal_cursor *c = NULL;
    struct event *e = xnew(struct event);
    size_t n = 0;

    assert_int_equal(journal_select(j, &(struct journal_choice){.job = job}, &c, NULL), 0);
    while (journal_next(c, e, NULL) == 1)
        n++;
    journal_cursor_free(c);
    free(e);
    return n;
}

/* Of what decides: all but how many steps were counted, and when the first was. */
static void expect_same(const struct core *a, const struct core *b, const char *name)
{
    const struct job *x = model_job(core_model(a), name), *y = model_job(core_model(b), name);

    assert_non_null(x);
    assert_non_null(y);
    assert_memory_equal(x->timing.gaps.sorted, y->timing.gaps.sorted,
                        sizeof(x->timing.gaps.sorted));
    assert_memory_equal(&x->timing.present, &y->timing.present, sizeof(x->timing.present));
    assert_memory_equal(&x->timing.learned, &y->timing.learned, sizeof(x->timing.learned));
    assert_int_equal(x->timing.first_step, y->timing.first_step);
    assert_memory_equal(&x->sched, &y->sched, sizeof(x->sched));
    assert_int_equal(x->state, y->state);
    assert_int_equal(x->ledger.judged, y->ledger.judged);
    assert_int_equal(x->ledger.restarts, y->ledger.restarts);
    assert_int_equal(x->ledger.best_step, y->ledger.best_step);
    assert_int_equal(x->attempt.number, y->attempt.number);
    assert_int_equal(x->attempt.last_step, y->attempt.last_step);
    assert_int_equal(x->attempt.highest_step, y->attempt.highest_step);
    assert_int_equal(x->attempt.first_step, y->attempt.first_step);
    assert_int_equal(x->attempt.first_step_at, y->attempt.first_step_at);
    assert_int_equal(x->attempt.last_progress, y->attempt.last_progress);
    assert_int_equal(x->attempt.started, y->attempt.started);
}

static void what_a_fold_makes_of_it_stays(void **state)
{
    struct site s;
    struct journal_keep keep;
    struct core *whole, *thin;
    size_t before;
    int r;

    (void)state;
    site_fill(&s);
    keep = site_keep(&s);
    whole = fold_all(s.j);
    before = count_of(s.j, "3-3");
    while ((r = journal_thin(s.j, &keep, 777, NULL)) > 0)
        ;
    assert_int_equal(r, 0);
    thin = fold_all(s.j);
    expect_same(whole, thin, "3-3");
    assert_null(model_job(core_model(thin), "1-1"));
    assert_non_null(model_job(core_model(thin), "2-2"));
    assert_int_equal(count_of(s.j, "1-1"), 0);
    assert_in_range(count_of(s.j, "3-3"), 600, before / 2);
    core_free(whole);
    core_free(thin);
    journal_free(s.j);
    expect_lost(JOURNAL_READ, s.seq, 0);
    expect_lost(JOURNAL_WRITE, s.seq, 0);
    run_sql("DELETE FROM event WHERE seq = (SELECT max(seq) FROM event)", SQLITE_CONSTRAINT);
}

/* However young: there may be no room. */
static void too_many_events_are_thinned_out(void **state)
{
    struct site s;
    struct journal_keep keep;

    (void)state;
    site_fill(&s);
    keep = site_keep(&s);
    keep.detail = 1000 * USEC_PER_DAY;
    keep.newest = 2000;
    while (journal_thin(s.j, &keep, 1000, NULL) > 0)
        ;
    assert_in_range(count_of(s.j, "3-3"), 1800, 3500);
    journal_free(s.j);
    expect_lost(JOURNAL_READ, s.seq, 0);
}

static unsigned steps_of(struct journal *j, uint32_t attempt, uint64_t *ret_first)
{
    struct journal_cursor *c = NULL;
    struct event *e = xnew(struct event);
    unsigned n = 0;

    assert_int_equal(journal_select(j, &(struct journal_choice){.job = "3-3"}, &c, NULL), 0);
    while (journal_next(c, e, NULL) == 1)
        if (e->attempt == attempt && e->kind == EVENT_SIGNAL) {
            *ret_first = e->seq;
            n++;
        }
    journal_cursor_free(c);
    free(e);
    return n;
}

/* What the loop waits for does not grow with what the attempts behind have told. */
static void a_step_of_thinning_out_has_a_bound(void **state)
{
    struct site s;
    struct journal_keep keep;
    uint64_t last = 0;

    site_fill(&s);
    s.batch = journal_batch_new();
    site_steps(&s, "3-3", 2, 30000, USEC_PER_SEC);
    assert_int_equal(journal_commit(s.j, s.batch, true, NULL), 0);
    s.batch = journal_batch_free(s.batch);
    keep = site_keep(&s);
    keep.detail = 0;
    most_work = 0;
    while (journal_thin(s.j, &keep, 300, NULL) > 0)
        ;
    assert_in_range(most_work, 1, 100000);
    assert_in_range(steps_of(s.j, 1, &last), 600, 800); /* its last, and one of each hour */
    assert_in_range(steps_of(s.j, 2, &last), 600, 1000);
    journal_free(s.j);
}

static void a_kill_while_it_is_thinned_out_loses_nothing(void **state)
{
    struct site s;
    struct core *before, *after;
    struct journal *j;
    int r = 1;

    (void)state;
    site_fill(&s);
    before = fold_all(s.j);
    journal_free(s.j);
    for (int round = 0; round < 20; round++) {
        struct journal_keep keep = site_keep(&s);
        int fds[2];
        pid_t pid;
        char c;

        assert_int_equal(pipe(fds), 0);
        pid = fork();
        if (pid == 0) {
            j = open_journal(JOURNAL_WRITE);
            while (journal_thin(j, &keep, 60, NULL) >= 0 && write(fds[1], "", 1) == 1)
                ;
            _exit(1);
        }
        for (int i = 0; i < 3 * round; i++) /* then it is somewhere in the next step */
            assert_int_equal(read(fds[0], &c, 1), 1);
        close(fds[0]);
        close(fds[1]);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        expect_lost(JOURNAL_WRITE, s.seq, 0);
        j = open_journal(JOURNAL_READ);
        after = fold_all(j);
        expect_same(before, after, "3-3");
        core_free(after);
        journal_free(j);
    }
    j = open_journal(JOURNAL_WRITE);
    while (r > 0) {
        struct journal_keep keep = site_keep(&s);

        r = journal_thin(j, &keep, 1000, NULL);
    }
    assert_int_equal(count_of(j, "1-1"), 0);
    core_free(before);
    journal_free(j);
}

/* What a start need not read. */
static void ended_jobs_can_be_left_out(void **state)
{
    struct site s;
    struct journal_cursor *c = NULL;
    struct event *e = xnew(struct event);

    (void)state;
    site_fill(&s);
    s.batch = journal_batch_new();
    site_begin(&s, "2-2"); /* anew */
    assert_int_equal(journal_commit(s.j, s.batch, true, NULL), 0);
    journal_batch_free(s.batch);
    assert_int_equal(journal_select(s.j,
                                    &(struct journal_choice){.ended_before = s.now - USEC_PER_DAY},
                                    &c, NULL),
                     0);
    assert_int_equal(journal_next(c, e, NULL), 1);
    while (journal_next(c, e, NULL) == 1)
        assert_string_not_equal(e->job, "1-1");
    assert_string_equal(e->job, "2-2");
    journal_cursor_free(c);
    journal_free(s.j);
    free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_survives),
        cmocka_unit_test(an_empty_event_is_short_and_survives),
        cmocka_unit_test(what_programs_read_says_what_it_is),
        cmocka_unit_test(json_is_canonical),
        cmocka_unit_test(what_is_not_known_is_refused_or_ignored),
#define WITH_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
        WITH_FOLDER(events_come_back_in_order),
        WITH_FOLDER(a_writer_that_is_killed_loses_nothing),
        WITH_FOLDER(what_a_damaged_log_takes_away_is_told),
        WITH_FOLDER(a_missing_log_is_told),
        WITH_FOLDER(an_unreadable_note_is_none),
        WITH_FOLDER(a_reader_leaves_no_files_behind),
        WITH_FOLDER(it_is_append_only),
        WITH_FOLDER(a_lock_of_another_is_not_waited_for),
        WITH_FOLDER(other_files_are_refused),
        WITH_FOLDER(a_newer_schema_is_refused),
        WITH_FOLDER(events_are_chosen_by_job_kind_and_place),
        WITH_FOLDER(a_journal_that_was_hardly_begun_is_empty),
        WITH_FOLDER(numbers_out_of_range_are_refused),
        WITH_FOLDER(a_full_disk_is_an_error_and_no_loss),
        WITH_FOLDER(what_a_fold_makes_of_it_stays),
        WITH_FOLDER(too_many_events_are_thinned_out),
        WITH_FOLDER(a_step_of_thinning_out_has_a_bound),
        WITH_FOLDER(a_kill_while_it_is_thinned_out_loses_nothing),
        WITH_FOLDER(ended_jobs_can_be_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
