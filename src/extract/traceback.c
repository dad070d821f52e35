/* SPDX-License-Identifier: Apache-2.0 */

/* A traceback is a header, frames of one or two lines each, and the exception:
 *
 *   Traceback (most recent call last):
 *     File "train.py", line 71, in step
 *       loss = model(x)
 *   ValueError: bad batch
 *
 * Processes whose lines carry a prefix are told apart by it. Those without share one traceback:
 * they mostly run the same code, so it does not matter whose frame is whose; but as many exceptions
 * are expected as headers were seen. Lines that are glued together or cut fit in nowhere and are
 * passed over; the matcher looks at them anyway. */

#include "extract/traceback.h"

#include "base/alloc.h"
#include "base/str.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define STREAMS_MAX  64  /* open tracebacks; the one unused for longest makes room */
#define LINES_MAX    400 /* of one traceback; a longer one is given up */
#define OPEN_MAX     64  /* headers without their exception */
#define IGNORED_NEAR 4   /* lines between what announces an ignored one and its header */

struct open_traceback {
    uint64_t stream;
    uint64_t used;    /* by the counter of lines */
    unsigned open;    /* exceptions that are still to come */
    unsigned ignored; /* of these, the next ones that end nothing */
    unsigned lines;
    bool has_user_frame;
    char frame[FRAME_TEXT_MAX];
};

struct tracebacks {
    uint64_t lines;
    unsigned n;
    struct open_traceback v[STREAMS_MAX];
};

struct tracebacks *tracebacks_new(void)
{
    return xnew(struct tracebacks);
}

struct tracebacks *tracebacks_free(struct tracebacks *t)
{
    free(t);
    return NULL;
}

static bool contains(const struct line *l, const char *word)
{
    return memmem(l->text, l->len, word, strlen(word)) != NULL;
}

static struct open_traceback *find_open(struct tracebacks *t, uint64_t stream)
{
    for (unsigned i = 0; i < t->n; i++)
        if (t->v[i].stream == stream)
            return &t->v[i];
    return NULL;
}

static struct open_traceback *make_room(struct tracebacks *t)
{
    struct open_traceback *oldest = &t->v[0];

    if (t->n < STREAMS_MAX)
        return &t->v[t->n++];
    for (unsigned i = 1; i < t->n; i++)
        if (t->v[i].used < oldest->used)
            oldest = &t->v[i];
    return oldest;
}

static void close_traceback(struct tracebacks *t, struct open_traceback *o)
{
    *o = t->v[--t->n];
}

static struct open_traceback *get_open(struct tracebacks *t, uint64_t stream)
{
    struct open_traceback *o = find_open(t, stream);

    if (!o) {
        o = make_room(t);
        *o = (struct open_traceback){.stream = stream};
    }
    o->used = t->lines;
    o->lines = 0;
    return o;
}

/* Where others are open at the same time, nobody knows whose exception comes next. */
static bool is_ignored(const struct open_traceback *o)
{
    return o->ignored > 0 && o->open <= o->ignored;
}

static enum traceback_part open_header(struct tracebacks *t, uint64_t stream)
{
    struct open_traceback *o = find_open(t, stream);

    if (o && o->open == 0 && o->lines > IGNORED_NEAR)
        close_traceback(t, o);
    o = get_open(t, stream);
    if (o->open < OPEN_MAX)
        o->open++;
    return is_ignored(o) ? TRACEBACK_IGNORED : TRACEBACK_BODY;
}

/* "Exception ignored in: <function X.__del__ ...>": raised where nothing could catch it, in a
 * finalizer or at exit; the program goes on. Its traceback follows, if it has one. */
static bool announces_ignored(struct tracebacks *t, const struct line *l)
{
    struct open_traceback *o;

    if (!contains(l, "Exception ignored in"))
        return false;
    o = get_open(t, l->stream);
    if (o->ignored < OPEN_MAX)
        o->ignored++;
    return true;
}

/* Whether the file of a frame is installed and not the user's own. */
static bool is_installed(const char *path, size_t len)
{
    static const char *const places[] = {"site-packages/", "dist-packages/", "/lib/python",
                                         "/lib64/python",  "<frozen ",       "/bin/"};

    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        if (memmem(path, len, places[i], strlen(places[i])))
            return true;
    return false;
}

/* `File "PATH", line N, in FUNCTION` anywhere in the line. */
static bool read_frame(struct open_traceback *o, const struct line *l)
{
    const char *end = l->text + l->len, *path = memmem(l->text, l->len, "File \"", 6), *quote;
    const char *base, *function;
    size_t digits;
    bool user;

    if (!path)
        return false;
    path += 6;
    quote = memchr(path, '"', (size_t)(end - path));
    if (!quote || end - quote < 9 || memcmp(quote, "\", line ", 8) != 0)
        return false;
    for (digits = 0; quote + 8 + digits < end && isdigit((unsigned char)quote[8 + digits]);)
        digits++;
    function = quote + 8 + digits;
    if (end - function < 6 || memcmp(function, ", in ", 5) != 0)
        function = end;
    else
        function += 5;
    user = !is_installed(path, (size_t)(quote - path));
    if (!user && o->has_user_frame)
        return true;
    o->has_user_frame = user;
    base = memrchr(path, '/', (size_t)(quote - path));
    base = base ? base + 1 : path;
    snprintf(o->frame, sizeof(o->frame), "%.*s:%.*s%s%.*s", (int)(quote - base), base, (int)digits,
             quote + 8, function < end ? " in " : "", (int)(end - function), function);
    return true;
}

/* "name", "package.module.Name", then the end or ": message"; returns the length of the name. */
static size_t exception_name(const struct line *l)
{
    size_t i = 0, part = 0;

    if (l->len == 0 || !(isalpha((unsigned char)l->text[0]) || l->text[0] == '_'))
        return 0;
    for (; i < l->len && i < 160; i++) {
        char c = l->text[i];

        if (c == '.')
            part = i + 1;
        else if (!isalnum((unsigned char)c) && c != '_')
            break;
    }
    /* Classes begin with a capital by convention; "gaierror" and a few do not. */
    if (i == part || (i < l->len && l->text[i] != ':') || (i + 1 < l->len && l->text[i + 1] != ' '))
        return 0;
    if (isupper((unsigned char)l->text[part]) ||
        (i > 5 && memcmp(l->text + i - 5, "error", 5) == 0))
        return i;
    return 0;
}

/* Other words stand before a colon as well: "Warning: ", "Epoch: ". */
bool line_is_bare_exception(const struct line *line)
{
    static const char *const endings[] = {"Error", "Exception", "Interrupt"};
    size_t n = exception_name(line);

    for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
        size_t len = strlen(endings[i]);

        if (n > len && memcmp(line->text + n - len, endings[i], len) == 0)
            return true;
    }
    return false;
}

static bool is_link(const struct line *l)
{
    return contains(l, "another exception occurred") ||
           contains(l, "direct cause of the following");
}

/* The exception of one of the open headers. */
static enum traceback_part end_of(struct tracebacks *t, struct open_traceback *o,
                                  char ret_frame[FRAME_TEXT_MAX])
{
    bool ignored = is_ignored(o);

    if (!ignored)
        str_sanitize(ret_frame, FRAME_TEXT_MAX, o->frame, strlen(o->frame));
    o->ignored -= o->ignored > 0;
    o->open -= o->open > 0;
    if (o->open == 0)
        close_traceback(t, o);
    return ignored ? TRACEBACK_IGNORED : TRACEBACK_EXCEPTION;
}

enum traceback_part tracebacks_feed(struct tracebacks *t, const struct line *line,
                                    char ret_frame[FRAME_TEXT_MAX])
{
    struct open_traceback *o;

    t->lines++;
    if (announces_ignored(t, line))
        return TRACEBACK_IGNORED;
    if (contains(line, "Traceback (most recent call last)"))
        return open_header(t, line->stream);
    o = find_open(t, line->stream);
    if (!o)
        return TRACEBACK_NONE;
    o->used = t->lines;
    if (++o->lines > LINES_MAX) {
        close_traceback(t, o);
        return TRACEBACK_NONE;
    }
    if (read_frame(o, line) || line->len == 0 || line->text[0] == ' ' || is_link(line))
        return TRACEBACK_BODY;
    if (exception_name(line) == 0)
        return TRACEBACK_NONE;
    return end_of(t, o, ret_frame);
}
