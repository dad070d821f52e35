/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_ATTRIBUTE_EVIDENCE_H
#define REKNIT_CORE_ATTRIBUTE_EVIDENCE_H

/* Inside of struct evidence, for the files of this folder only. What is kept is bounded:
 * HITS_MAX lines by (signature, file, entity), numbers per signature, per rank, per stream. */

#include "base/vec.h"
#include "core/attribute/attribute.h"
#include "core/attribute/roster.h"
#include "core/measure/collective.h"
#include "core/measure/series.h"

#define HITS_MAX            2048
#define HITS_PER_SIGNATURE  64
#define ROOTS_PER_SIGNATURE 256
#define SIGNATURES_MAX      256
#define STREAMS_MAX         4096 /* files; those beyond share the last place */
#define TRACKS_MAX          64
#define SERIES_MAX          4
#define EXITS_MAX           256
#define HEALED_MAX          16

/* A file of the attempt. `advance` counts its steps forward: what was seen at a lower count has
 * been survived. */
struct stream {
    int64_t advance;
    usec_t time_us; /* latest clock seen */
    bool alive;     /* it shows more of the job than its end */
    bool cut;       /* it ends within a line */
    bool uptime;    /* it has clocks that count from a boot */
    usec_t shift;   /* whole years to add to clocks */
};

/* Occurrences of one signature by one entity since the last progress of its stream. */
struct hit {
    struct signal s; /* the first of them */
    uint64_t key;
    uint64_t order;  /* of arrival */
    usec_t time_us;  /* own clock, else the stream's latest; USEC_UNKNOWN */
    usec_t place_us; /* time_us, else the latest one of all hits before */
    int64_t advance; /* of the stream */
    uint64_t count;  /* in all, earlier stretches included */
    usec_t first_us, last_us;
    usec_t begun_us; /* the first one's own clock, whatever it counts from; USEC_UNKNOWN */
    usec_t lasted;   /* from there to the last */
    uint64_t last_order;
};

struct signature_facts {
    char id[SIGNATURE_MAX];
    uint64_t count;
    uint32_t kept;       /* hits */
    struct intset ranks; /* that reported it since the last progress */
    int64_t advance;
};

/* A step counter: the lines of one signature in one file. */
struct track {
    char signature[SIGNATURE_MAX];
    uint32_t file;
    int64_t highest, total;
    int64_t stride; /* between two lines */
    uint32_t resets;
};

/* A process that a launcher, the scheduler or reknit itself saw failing. Launchers tell it over
 * several lines (host, rank, exit code), which are put together here. */
struct exit_seen {
    struct entity who;
    bool has_code;
    bool headless;  /* the file begins with it: what came before may be missing */
    bool named;     /* a launcher says in plain words that this rank was the first to fail */
    int64_t pid;    /* 0 = not told */
    int32_t code;   /* exit status, -1 = killed by `signal` */
    int32_t signal; /* 0 = none */
    bool unkept;    /* killed because its keeper was */
    enum provenance provenance;
    enum layer layer;
    char signature[SIGNATURE_MAX]; /* of the line that opened it */
    char text[EXCERPT_LEN];
    usec_t time_us;
    uint32_t file;
    uint64_t line, last_line, order; /* line: the one that told the rank or the code */
    uint64_t code_line;              /* the one that told the code, 0: none yet */
    char code_text[EXCERPT_LEN];
    int64_t advance;
};

struct pace {
    struct progress_summary sum;
    struct series_window step; /* durations of late */
    struct series_window gap;  /* the same by the clocks of the lines */
    usec_t max_gap, by_clock;  /* time of the last step by the clocks, or NUMBER_NONE */
    struct sample last;        /* the last line that showed progress */
    usec_t last_us;            /* its clock, own or inherited; USEC_UNKNOWN */
    uint32_t nan_run;          /* lines in a row at the end whose gradient norm is nan */
    struct sample nan;         /* the first of them */
    uint32_t skipped_run;      /* updates skipped in a row at the end */
    bool any;
};

/* Trouble that was over. */
struct healed {
    char what[SIGNATURE_MAX]; /* signature or family */
    char node[NODE_NAME_LEN]; /* "" unknown */
};

struct evidence {
    VEC(struct stream) streams;
    VEC(struct hit) hits;
    VEC(uint64_t) keys; /* of hits, for the search */
    VEC(struct signature_facts) signatures;
    VEC(struct track) tracks;
    VEC(struct exit_seen) exits;
    struct collectives waits;
    uint32_t n_loss, n_time, n_rate;
    struct series *loss[SERIES_MAX], *time[SERIES_MAX], *rate[SERIES_MAX];
    struct pace pace;
    struct roster roster;
    struct intset stopped, blocked; /* ranks whose process was seen in that state */
    enum phase phase;               /* open since the last progress */
    struct signal phase_line;       /* that told of it */
    struct signal finish;
    struct healed healed[HEALED_MAX];
    uint32_t n_healed;
    bool finished;
    bool gap; /* a part could not be read */
    usec_t finish_us;
    usec_t last_us;                          /* latest clock of anything */
    usec_t silence_first_us, silence_end_us; /* clocks of the lines after the last progress */
    uint64_t silence_lines;
    uint64_t order;             /* of signals, as they come */
    uint64_t seen;              /* signals that tell more than that there is output */
    uint64_t advances, full_at; /* all streams' together; when the table was found full */
    usec_t hits_us;             /* latest time of a hit */
    uint64_t dropped;           /* hits beyond the bounds */
};

/* Adds the words of the message, without numbers and names, to the hash (fingerprint.c). */
uint64_t fingerprint_template(uint64_t h, const struct signal *s);
/* Of a file that was seen: the only way to look one up. */
const struct stream *evidence_stream(const struct evidence *e, uint32_t file);
/* Whether trouble of the signature's family came to an end by itself on the node. */
bool evidence_healed(const struct evidence *e, const char *signature, const char *node);
/* How reknit itself saw the first process end; NULL = it did not. */
const struct exit_seen *evidence_own_exit(const struct evidence *e);
bool exit_is_first(const struct evidence *e, const struct exit_seen *x);
bool exit_brought_down_others(const struct evidence *e, const struct exit_seen *x);
const struct signature_facts *evidence_signature(const struct evidence *e, const char *id);

#endif
