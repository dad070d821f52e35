/* SPDX-License-Identifier: Apache-2.0 */

/* From a record to signals. Besides what the catalogue finds in it:
 *
 *   - the labels of srun -l are ranks where several tasks print and none says otherwise;
 *   - the exception of a traceback is told even when no entry knows it, and with the frame of the
 *     user's code that it came from;
 *   - records in which nothing is found are held back in `garble` for a while: when processes write
 *     over each other character by character, a word lies across several of them;
 *   - the last record of a log may be cut in the middle of a word, a name or a number;
 *   - in a log without any progress that the catalogue knows, a counter is sought;
 *   - once a second of the log's own time it is told that there is output. */

#include "extract/record.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/intset.h"
#include "base/str.h"
#include "base/vec.h"
#include "extract/counter.h"
#include "extract/facts.h"
#include "extract/line.h"
#include "extract/mapping.h"
#include "extract/prefix.h"
#include "extract/section.h"
#include "extract/shuffle.h"
#include "extract/stacks.h"
#include "extract/traceback.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define EXCEPTION_ENTRY  "python.exception" /* stands for what no other entry knows */
#define KNOWN_STEPS      3   /* with so many steps of known form no counter is sought */
#define EXCERPT_KEPT     200 /* of the text, where a remark is to follow */
#define NODES_MAX        4096
#define GARBLE_BYTES     2048
#define GARBLE_RECORDS   64
#define GARBLES_MAX      256 /* of one log that are read: it takes a while */
#define STACK_CONFIDENCE 40
#define GUESS_CONFIDENCE 20           /* percent, of what a cut line would have said */
#define OTHER_CLOCK      USEC_PER_DAY /* so far back is another clock, or another year */
#define CUT_WORD_MIN     8            /* of a word at the end of the log that was cut */

/* Records without a hit, put together; their line ends are left out. */
struct garble {
    bool suspect;
    size_t len;
    unsigned n;
    struct {
        size_t at; /* in text */
        struct place place;
        struct line line; /* without its text */
    } records[GARBLE_RECORDS];
    char text[GARBLE_BYTES];
};

/* The tasks of srun -l. */
struct labels {
    struct intset tasks;
    uint64_t labelled, bare; /* lines */
    bool refuted;            /* a line names another rank than its label does */
    int32_t last_mark;       /* of "[29] ": it is a label if the numbers come again, in any order */
    uint32_t falls;          /* how often it was smaller than the one before */
};

struct record_reader {
    struct matcher *matcher;
    struct scanner_options options;
    scanner_sink_fn sink;
    void *ctx;
    uint64_t steps, known_steps, signals;

    struct log_clock clock;
    usec_t told_us;      /* time of the last signal, as the log shows it */
    struct intset ranks; /* that have shown themselves */
    struct intset nodes; /* likewise, hashed */
    struct intset hosts; /* names that the log says to be hosts of ranks, hashed */
    bool is_mapped;      /* a list of all nodes and ranks was read */
    struct labels labels;
    int32_t piece_rank; /* of whoever printed the end of the last piece of a long record */
    struct line first;  /* what the first record of line first_line has in front */
    uint64_t first_line;

    struct tracebacks *tracebacks;
    struct section section;
    struct stacks *stacks;
    struct counters *counters;
    struct garble garble;
    unsigned garbles_read;
    struct entity who; /* whose log it is, as far as that is known */
    char clean[RECORD_BYTES + 1];
};

/* A stripped record being read. */
struct reading {
    struct line line;
    const char *seen; /* hits that end up to here are known */
    const struct place *place;
    const char *frame; /* of an exception, "" none */
    bool is_exception; /* the line ends a traceback */
    bool is_bare_exception;
    bool is_cut;       /* the log ends within it */
    bool is_continued; /* another piece of the record came before */
    bool told;         /* anything */
    bool told_failure;
};

struct record_reader *record_reader_new(struct matcher *m, const struct scanner_options *o,
                                        scanner_sink_fn sink, void *ctx)
{
    struct record_reader *r = xnew(struct record_reader);

    r->matcher = m;
    r->options = *o;
    r->sink = sink;
    r->ctx = ctx;
    r->told_us = USEC_UNKNOWN;
    r->clock = (struct log_clock){o->now_us > 0 ? o->now_us : USEC_UNKNOWN, USEC_UNKNOWN, 0};
    r->tracebacks = tracebacks_new();
    r->section.rank = r->section.local_rank = RANK_NONE;
    r->stacks = stacks_new();
    r->counters = counters_new();
    r->who = (struct entity){.rank = RANK_NONE, .local_rank = RANK_NONE};
    if (o->who) {
        r->who = *o->who;
        str_sanitize(r->who.node, sizeof(r->who.node), o->who->node, strlen(o->who->node));
    }
    return r;
}

struct record_reader *record_reader_free(struct record_reader *r)
{
    if (!r)
        return NULL;
    counters_free(r->counters);
    stacks_free(r->stacks);
    tracebacks_free(r->tracebacks);
    intset_done(&r->ranks);
    intset_done(&r->labels.tasks);
    intset_done(&r->nodes);
    intset_done(&r->hosts);
    free(r);
    return NULL;
}

uint64_t record_steps(const struct record_reader *r)
{
    return r->steps;
}

static void emit(struct record_reader *r, struct signal *signal, const struct place *place)
{
    signal->file = r->options.file;
    signal->uptime &= !r->options.alone;
    signal->line = place->line;
    signal->offset = place->offset;
    r->steps += signal->kind == SIGNAL_STEP;
    r->signals++;
    r->sink(r->ctx, signal);
}

static bool is_failure(enum role role)
{
    return role == ROLE_ROOT || role == ROLE_SYMPTOM || role == ROLE_CASCADE;
}

/* Adds "  (WHAT)" to the text of a signal, if it is short enough to be kept as a whole. */
static void add_remark(struct signal *signal, const char *what)
{
    size_t n = strlen(signal->text);

    if (*what && n + strlen(what) + 5 < sizeof(signal->text))
        snprintf(signal->text + n, sizeof(signal->text) - n, "  (%s)", what);
}

static struct signal signal_of(const struct record_reader *r, const struct line_hit *hit,
                               const struct line *line)
{
    return facts_from_hit(matcher_catalog(r->matcher), hit, line, r->options.provenance);
}

/* A full date inside a message tells the year of the clocks that have none. */
static void learn_date(struct record_reader *r, const struct line_hit *hit, const struct signal *s)
{
    if (hit->fields[FIELD_TIME].s && s->time_us != USEC_UNKNOWN && !s->uptime)
        r->clock.last_us = s->time_us;
}

/* Of such a line the rest may still tell something. */
static bool tells_place_only(const struct entry *e)
{
    return e->role == ROLE_NOISE && e->hides.n == 0 && !*e->clears;
}

/* What a cut line ends with may be the beginning of a longer name or number. */
static void drop_cut_fields(const struct reading *g, struct line_hit *hit)
{
    for (int i = 0; i < FIELD_MAX && g->is_cut; i++)
        if (hit->fields[i].s && hit->fields[i].s + hit->fields[i].len == g->line.text + g->line.len)
            hit->fields[i] = (struct capture){0};
}

/* What a line only suggests goes with a failure that is known from elsewhere, and is none by
 * itself. An end by the scheduler, or of an unknown cause, has nothing it could go with. Returns
 * whether anything is left to tell. */
static bool doubt(struct signal *s)
{
    if (cause_domain(s->cause) == DOMAIN_SCHEDULER ||
        (s->role == ROLE_CONFIRM && s->cause == CAUSE_UNKNOWN))
        return false;
    if (s->role == ROLE_ROOT)
        s->role = ROLE_SYMPTOM;
    if (s->confidence > GUESS_CONFIDENCE)
        s->confidence = GUESS_CONFIDENCE;
    s->advice = ADVICE_NONE;
    return true;
}

/* A program that reports a fault of its own as information lives with it. */
static bool is_lived_with(const struct reading *g, const struct signal *s)
{
    return !s->raised && s->role == ROLE_ROOT &&
           (s->cause == CAUSE_USER_CODE || s->cause == CAUSE_USER_CONFIG) &&
           line_is_informative(&g->line);
}

static int32_t hash_name(const char *s, size_t len)
{
    return (int32_t)(hash_bytes(HASH_INIT, s, len) & INT32_MAX);
}

static void learn_host(struct record_reader *r, const char *name)
{
    if (*name && r->hosts.n < NODES_MAX)
        intset_add(&r->hosts, hash_name(name, strlen(name)));
}

/* "compC: " is a host's only where the log says elsewhere that it is one. */
static void read_host(struct record_reader *r, struct line *line)
{
    size_t n = r->hosts.n > 0 && !*line->node ? prefix_name(line) : 0;

    if (n > 0 && intset_has(&r->hosts, hash_name(line->text, n)))
        prefix_take_name(&r->clock, line, n);
}

/* Tells where each rank runs: of each node the first one, and how many there are. */
static void tell_mapping(struct record_reader *r, const struct reading *g)
{
    struct mapped_node node;
    struct mapping m;

    if (r->is_mapped || !mapping_find(&g->line, &m))
        return;
    r->is_mapped = true;
    while (mapping_next(&m, &node)) {
        struct signal signal = signal_make(SIGNAL_OUTPUT, r->options.provenance);

        signal.who.rank = node.first;
        signal.who.local_rank = 0;
        STR_COPY(signal.who.node, node.name);
        snprintf(signal.who.tasks, sizeof(signal.who.tasks), "%d-%d", node.first, node.last);
        learn_host(r, node.name);
        emit(r, &signal, g->place);
    }
}

/* Tells what the catalogue finds; returns whether anything was. */
static bool tell_hits(struct record_reader *r, struct reading *g)
{
    struct line_hit hits[LINE_HITS_MAX];
    size_t n = matcher_line(r->matcher, g->line.text, g->line.len, hits), places = 0;

    for (size_t i = 0; i < n; i++) {
        struct signal signal;

        places += tells_place_only(hits[i].entry);
        if (hit_silence(&hits[i], g->is_exception) || g->line.text + hits[i].end <= g->seen)
            continue;
        drop_cut_fields(g, &hits[i]);
        signal = signal_of(r, &hits[i], &g->line);
        signal.cut = g->is_cut;
        signal.raised = g->is_exception || g->is_bare_exception;
        if (is_lived_with(g, &signal) && !doubt(&signal))
            continue;
        learn_date(r, &hits[i], &signal);
        if (tells_place_only(hits[i].entry))
            learn_host(r, signal.who.node);
        if (is_failure(hits[i].entry->role)) {
            g->told_failure = true;
            add_remark(&signal, g->frame);
        }
        r->known_steps += signal.kind == SIGNAL_STEP;
        g->told = true;
        emit(r, &signal, g->place);
    }
    return n > places;
}

/* An exception that no entry knows. */
static void tell_exception(struct record_reader *r, struct reading *g)
{
    const struct entry *entry = catalog_find(matcher_catalog(r->matcher), EXCEPTION_ENTRY);
    struct line_hit hit = {.entry = entry, .end = g->line.len};
    struct signal signal;

    if (!entry)
        return;
    signal = signal_of(r, &hit, &g->line);
    signal.raised = true;
    add_remark(&signal, g->frame);
    g->told = true;
    emit(r, &signal, g->place);
}

/* A rank whose stack somebody dumps stands where it stands: the ranks are compared by core. */
static void tell_stand(struct record_reader *r, const struct stand *stand)
{
    struct signal signal = signal_make(SIGNAL_COLLECTIVE, r->options.provenance);
    STR_COPY(signal.signature, STACKS_SIGNATURE);
    signal.role = ROLE_SYMPTOM;
    signal.cause = CAUSE_UNKNOWN;
    signal.blame = BLAME_RANK;
    signal.confidence = STACK_CONFIDENCE;
    signal.hang = true;
    signal.who.rank = stand->rank;
    STR_COPY(signal.collective.group, COLLECTIVE_STACKS);
    STR_COPY(signal.collective.op, stand->at);
    STR_COPY(signal.text, stand->frame);
    emit(r, &signal, &(struct place){.line = stand->line, .offset = stand->offset});
}

static void tell_counter(struct record_reader *r, struct reading *g)
{
    struct signal signal = signal_make(SIGNAL_STEP, r->options.provenance);

    if (r->known_steps >= KNOWN_STEPS || !counters_feed(r->counters, &g->line, &signal.step))
        return;
    STR_COPY(signal.signature, COUNTER_SIGNATURE);
    signal.role = ROLE_PROGRESS;
    signal.time_us = g->line.time_us;
    signal.uptime = g->line.uptime;
    signal.who.rank = g->line.rank;
    signal.who.local_rank = g->line.local_rank;
    STR_COPY(signal.who.node, g->line.node);
    facts_text(&signal, &g->line, 0, sizeof(signal.text) - 1);
    g->told = true;
    emit(r, &signal, g->place);
}

static bool is_new_node(struct record_reader *r, const char *node)
{
    return *node && r->nodes.n < NODES_MAX && intset_add(&r->nodes, hash_name(node, strlen(node)));
}

/* Tells that the job writes: once a second of the log's own time, and when a rank or node first
 * shows. */
static void tell_output(struct record_reader *r, const struct reading *g)
{
    const struct line *line = &g->line;
    bool is_new = line->rank != RANK_NONE && intset_add(&r->ranks, line->rank);
    bool has_time = line->time_us != USEC_UNKNOWN;
    struct signal signal;

    is_new |= is_new_node(r, line->node);
    if (has_time && (r->told_us == USEC_UNKNOWN || line->time_us >= r->told_us + USEC_PER_SEC ||
                     line->time_us < r->told_us - OTHER_CLOCK))
        is_new = true;
    if (has_time && (g->told || is_new))
        r->told_us = line->time_us;
    if (g->is_cut && r->signals > 0)
        is_new = true;
    if (g->told || !is_new)
        return;
    signal = signal_make(SIGNAL_OUTPUT, r->options.provenance);
    if (line->of_system)
        signal.layer = LAYER_KERNEL; /* a machine talks on, whatever its jobs do */
    signal.cut = g->is_cut;
    signal.time_us = line->time_us;
    signal.uptime = line->uptime;
    signal.who.rank = line->rank;
    signal.who.local_rank = line->local_rank;
    signal.who.label = line_label(line);
    STR_COPY(signal.who.node, line->node);
    signal.who.pid = line->pid;
    emit(r, &signal, g->place);
}

/* Reads `repaired` in the place of what stands in the record: hits that reach beyond `from` are
 * told, with the text as it was. When the repair is a guess, only as doubtful ones. */
static bool tell_repaired(struct record_reader *r, const struct line *line, const char *repaired,
                          size_t len, size_t from, const char *remark, const struct place *place,
                          bool guessed)
{
    struct line_hit hits[LINE_HITS_MAX];
    struct line as_read = *line;
    size_t n;
    bool told = false;

    as_read.whole = as_read.text = repaired;
    as_read.whole_len = as_read.len = len;
    n = matcher_line(r->matcher, repaired, len, hits);
    for (size_t i = 0; i < n; i++) {
        struct signal signal;

        if (hit_silence(&hits[i], false) || hits[i].end <= from)
            continue;
        signal = signal_of(r, &hits[i], &as_read);
        facts_text(&signal, line, 0, EXCERPT_KEPT);
        add_remark(&signal, remark);
        if (guessed && !doubt(&signal))
            continue;
        told = true;
        emit(r, &signal, place);
    }
    return told;
}

/* The record of the garble in which text[at] is. */
static unsigned garble_record(const struct garble *g, size_t at)
{
    unsigned i = 0;

    while (i + 1 < g->n && g->records[i + 1].at <= at)
        i++;
    return i;
}

/* What interleaved copies of a literal were found in the garble. */
struct shuffled {
    const struct literal *literal;
    unsigned copies;
    size_t at;
};

#define SHUFFLED_MAX 8

/* Keeps the longest ones, longest first: the longer a word, the more it says. */
static void keep_longest(struct shuffled found[SHUFFLED_MAX], unsigned *n, struct shuffled next)
{
    unsigned i = *n;

    if (i == SHUFFLED_MAX) {
        if (found[i - 1].literal->len >= next.literal->len)
            return;
        i--;
    } else {
        ++*n;
    }
    for (; i > 0 && found[i - 1].literal->len < next.literal->len; i--)
        found[i] = found[i - 1];
    found[i] = next;
}

static bool tell_shuffled(struct record_reader *r, const struct shuffled *found)
{
    const struct garble *g = &r->garble;
    unsigned i = garble_record(g, found->at);
    const struct literal *l = found->literal;
    char remark[LITERAL_BYTES_MAX + 64], repaired[LITERAL_BYTES_MAX + 8];
    struct line line = g->records[i].line;
    int n;

    line.whole = line.text = g->text + g->records[i].at;
    line.whole_len = line.len = (i + 1 < g->n ? g->records[i + 1].at : g->len) - g->records[i].at;
    snprintf(remark, sizeof(remark), "%u processes at once: %.*s", found->copies, l->len, l->s);
    if (tell_repaired(r, &line, l->s, l->len, 0, remark, &g->records[i].place, false))
        return true;
    /* Many patterns want what stands behind the name of an exception. */
    n = snprintf(repaired, sizeof(repaired), "%.*s: ?", l->len, l->s);
    return tell_repaired(r, &line, repaired, (size_t)n, 0, remark, &g->records[i].place, false);
}

static void read_garble(struct record_reader *r)
{
    const struct garble *g = &r->garble;
    struct shuffled found[SHUFFLED_MAX];
    struct shuffle_letters letters;
    const struct cover_literal *literals;
    unsigned n_found = 0;
    size_t n;

    if (r->garbles_read++ >= GARBLES_MAX)
        return;
    shuffle_count(g->text, g->len, &letters);
    literals = matcher_literals(r->matcher, &n);
    for (size_t i = 0; i < n; i++) {
        struct shuffled next = {.literal = &literals[i].text};

        if (!shuffle_possible(&letters, next.literal->s, next.literal->len))
            continue;
        next.copies = shuffle_find(g->text, g->len, next.literal->s, next.literal->len, &next.at);
        if (next.copies > 0)
            keep_longest(found, &n_found, next);
    }
    for (unsigned i = 0; i < n_found; i++)
        if (tell_shuffled(r, &found[i]))
            return;
}

void record_flush(struct record_reader *r)
{
    if (r->garble.suspect)
        read_garble(r);
    r->garble.suspect = false;
    r->garble.len = 0;
    r->garble.n = 0;
}

void record_end(struct record_reader *r)
{
    struct stand stand;

    if (stacks_feed(r->stacks, NULL, 0, 0, &stand))
        tell_stand(r, &stand);
    record_flush(r);
}

/* Holds a record back in which nothing was found. */
static void add_garble(struct record_reader *r, const struct reading *reading)
{
    struct garble *g = &r->garble;
    const struct line *line = &reading->line;
    size_t n = line->len < GARBLE_BYTES ? line->len : GARBLE_BYTES, from;

    if (g->n == GARBLE_RECORDS || g->len + n > GARBLE_BYTES)
        record_flush(r);
    assert(g->n < GARBLE_RECORDS && g->len + n <= GARBLE_BYTES);
    g->records[g->n].at = g->len;
    g->records[g->n].place = *reading->place;
    g->records[g->n++].line = *line;
    memcpy(g->text + g->len, line->text, n);
    from = g->len < 32 ? 0 : g->len - 32;
    g->len += n;
    g->suspect |= shuffle_suspect(g->text + from, g->len - from);
}

/* A record in the middle of a line (a bar that was rewritten) has its prefix at the beginning of
 * the line. */
static void inherit(struct record_reader *r, struct line *line, uint64_t number)
{
    const struct line *first = &r->first;

    if (r->first_line != number || line->stream != 0) {
        r->first_line = number;
        r->first = *line;
        return;
    }
    line->rank = first->rank;
    line->local_rank = first->local_rank;
    line->stream = first->stream;
    if (line->node[0] == '\0')
        STR_COPY(line->node, first->node);
    if (line->time_us != USEC_UNKNOWN)
        return;
    line->time_us = first->time_us;
    line->uptime = first->uptime;
}

/* Steps and epochs in brackets only grow, and each is done once. */
#define FALLS_MIN 2

static bool mark_is_label(struct labels *l, const struct line *line)
{
    if (line->mark == 0)
        return true;
    l->falls += line->label < l->last_mark;
    l->last_mark = line->label;
    return l->falls >= FALLS_MIN && l->labelled >= 2 * l->tasks.n;
}

/* With one task for each node a launcher runs inside, and with one task there is nothing to tell
 * apart: a label is the rank only where there are several tasks, as many lines have one, and what
 * is said in plain words agrees with it. */
static void read_label(struct labels *l, struct line *line)
{
    if (line->label == RANK_NONE) {
        l->bare++;
        return;
    }
    l->labelled++;
    intset_add(&l->tasks, line->label);
    l->refuted |=
        line->local_rank != RANK_NONE || (line->rank != RANK_NONE && line->rank != line->label);
    if (line->rank != RANK_NONE || l->refuted || (l->tasks.n <= 1 && line->label == 0) ||
        2 * l->labelled < l->bare || !mark_is_label(l, line))
        return;
    line->rank = line->label;
    line->text += line->mark;
    line->len -= line->mark;
}

/* What the line does not say itself. */
static void fill_who(struct line *line, const struct entity *who)
{
    if (line->rank == RANK_NONE)
        line->rank = who->rank;
    if (line->local_rank == RANK_NONE)
        line->local_rank = who->local_rank;
    if (line->node[0] == '\0')
        STR_COPY(line->node, who->node);
}

static void read_text(struct record_reader *r, const char *text, size_t len, struct reading *g)
{
    struct stand stand;
    char frame[FRAME_TEXT_MAX] = "";
    enum traceback_part part;
    bool hit;

    g->told = g->told_failure = false;
    g->frame = frame;
    line_read(&r->clock, text, len, &g->line);
    if (g->line.whole_len == 0)
        return;
    read_host(r, &g->line);
    read_label(&r->labels, &g->line);
    inherit(r, &g->line, g->place->line);
    if (g->is_continued)
        g->line.rank = r->piece_rank;
    fill_who(&g->line, &r->who);
    if (stacks_feed(r->stacks, &g->line, g->place->line, g->place->offset, &stand))
        tell_stand(r, &stand);
    part = tracebacks_feed(r->tracebacks, &g->line, frame);
    section_feed(&r->section, &g->line, part);
    g->is_exception = part == TRACEBACK_EXCEPTION;
    g->is_bare_exception = !g->is_exception && line_is_bare_exception(&g->line);
    if (part == TRACEBACK_IGNORED) {
        tell_output(r, g);
        return;
    }
    tell_mapping(r, g);
    hit = tell_hits(r, g);
    if (part == TRACEBACK_EXCEPTION && !hit)
        tell_exception(r, g);
    else if (part == TRACEBACK_NONE && !hit)
        tell_counter(r, g);
    if (hit)
        record_flush(r);
    else if (!g->told)
        add_garble(r, g);
    tell_output(r, g);
}

/* Strips a record and reads its parts: a CR that was spelled out splits it, too. The last part is
 * left in g. */
static void read_parts(struct record_reader *r, const char *raw, size_t len, size_t seen,
                       struct reading *g)
{
    size_t stripped_seen, n, from = 0;
    bool is_cut = g->is_cut;

    assert(len <= RECORD_BYTES && seen <= len);
    stripped_seen = seen > 0 ? line_strip(raw, seen, r->clean) : 0;
    n = line_strip(raw, len, r->clean);
    g->seen = r->clean + stripped_seen;
    g->is_continued = seen > 0;
    while (from <= n) {
        const char *cr = memchr(r->clean + from, '\r', n - from);
        size_t to = cr ? (size_t)(cr - r->clean) : n;

        g->is_cut = is_cut && !cr;
        read_text(r, r->clean + from, to - from, g);
        from = to + 1;
        g->is_continued = false;
    }
    if (len == RECORD_BYTES) {
        r->piece_rank = prefix_rank_before(g->line.text, g->line.len);
        if (r->piece_rank == RANK_NONE)
            r->piece_rank = g->line.rank;
    }
}

void record_read(struct record_reader *r, const char *raw, size_t len, size_t seen,
                 const struct place *place)
{
    struct reading g = {.place = place};

    read_parts(r, raw, len, seen, &g);
}

/* The literal with whose beginning the text ends; *ret_n = bytes of it that are there. */
static const struct literal *find_cut_literal(const struct record_reader *r, const char *text,
                                              size_t len, size_t *ret_n)
{
    const struct literal *best = NULL;
    const struct cover_literal *literals;
    size_t n;

    *ret_n = CUT_WORD_MIN - 1;
    literals = matcher_literals(r->matcher, &n);
    for (size_t i = 0; i < n; i++) {
        const struct literal *l = &literals[i].text;

        for (size_t k = l->len; k-- > *ret_n + 1;)
            if (k <= len && memcmp(text + len - k, l->s, k) == 0) {
                best = l;
                *ret_n = k;
                break;
            }
    }
    return best;
}

void record_read_last(struct record_reader *r, const char *raw, size_t len, size_t seen,
                      const struct place *place)
{
    struct reading g = {.place = place, .is_cut = true};
    const struct literal *cut;
    char repaired[512], remark[LITERAL_BYTES_MAX + 32];
    size_t there, keep;

    read_parts(r, raw, len, seen, &g);
    if (g.told_failure || g.line.len == 0)
        return;
    cut = find_cut_literal(r, g.line.text, g.line.len, &there);
    if (!cut)
        return;
    keep = g.line.len < sizeof(repaired) - LITERAL_BYTES_MAX ? g.line.len
                                                             : sizeof(repaired) - LITERAL_BYTES_MAX;
    memcpy(repaired, g.line.text + g.line.len - keep, keep);
    memcpy(repaired + keep, cut->s + there, cut->len - there);
    snprintf(remark, sizeof(remark), "cut short: %.*s", cut->len, cut->s);
    tell_repaired(r, &g.line, repaired, keep + cut->len - there, keep, remark, place, true);
}

static enum record_weight weigh_hits(const struct line_hit *hits, size_t n)
{
    enum record_weight weight = RECORD_NONE;

    for (size_t i = 0; i < n; i++) {
        if (hit_silence(&hits[i], false))
            continue;
        switch (hits[i].entry->role) {
        case ROLE_PROGRESS:
        case ROLE_NOISE:
            break;
        case ROLE_CHECKPOINT:
        case ROLE_PHASE:
            weight = RECORD_LIGHT;
            break;
        default:
            return RECORD_GRAVE;
        }
    }
    return weight;
}

static bool has_traceback(const char *raw, size_t len)
{
    return memmem(raw, len, "Traceback", 9) || memmem(raw, len, "call last", 9);
}

enum record_weight record_weigh(struct record_reader *r, const char *raw, size_t len)
{
    struct log_clock clock = r->clock;
    struct line_hit hits[LINE_HITS_MAX];
    struct line line;

    if (len > RECORD_BYTES || has_traceback(raw, len))
        return RECORD_GRAVE;
    if (!matcher_may_matter(r->matcher, raw, len))
        return RECORD_NONE;
    line_clean(&clock, raw, len, r->clean, &line);
    return weigh_hits(hits, matcher_line(r->matcher, line.text, line.len, hits));
}
