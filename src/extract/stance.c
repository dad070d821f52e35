/* SPDX-License-Identifier: Apache-2.0 */

/* The words of a failure do not make one. A line that tells of it is told from one that only
 * mentions it by what stands around the words, wherever they come from: so these are rules about
 * language and belong to no entry of the catalogue.
 *
 * Each rule looks at one part of the line. A denial must stand in the same clause, for lines often
 * say what did not go on and then why; what copes may stand far behind. Imperatives ("use --foo
 * instead") are no rule: they are advice, and exceptions end with it. Every example of the
 * catalogue is held against these rules when it is built, so that none of them silences a line that
 * is known to be true. */

#include "extract/stance.h"

#include "base/alloc.h"
#include "base/str.h"

#include <ctype.h>
#include <string.h>

#define LOOK_BYTES 240 /* on either side */

static const char *const stance_names[STANCE_MAX] = {
    [STANCE_TELLS] = "tells of it",
    [STANCE_DENIES] = "denies it",
    [STANCE_WATCHES] = "only watches for it",
    [STANCE_COPES] = "goes on without it",
    [STANCE_QUOTES] = "quotes it",
};
DEFINE_NAMES(stance, enum stance, stance_names);

enum part {
    PART_CLAUSE, /* from the last comma or colon up to the words */
    PART_BEFORE, /* all before the words */
    PART_BEHIND, /* all behind them */
    PART_ACROSS, /* the whole line: what matches must overlap with the words */
    PART_CODE,   /* the whole line, and the words are inside of quotes or brackets */
    PART_LINE,   /* the whole line */
};

/* What separates the words from how it goes on. */
#define UP_TO_A_BREAK                                                                              \
    "^(?:(?!\\b(?i:try|consider|please|either)\\b).)*?"                                            \
    "(?:[,;.:(\\[]| [-\xe2\x80\x93\xe2\x80\x94>]+| and| but| so)\\s*"                              \
    "(?:(?:so|and|but|we|it|thus|therefore|now|then|instead|just|simply|this|which|is|are|will|"   \
    "be|"                                                                                          \
    "thread|batch|update|step|module|feature|kernel|metrics|logging) ){0,4}"

static const struct rule {
    enum stance stance;
    enum part part;
    const char *text;
    bool prose; /* not where the line begins with the name of an exception */
} rules[] = {
    /* "no X", "without any Y": up to three words between, none of which begins another thought */
    {STANCE_DENIES, PART_CLAUSE,
     "\\b(?i:no|zero|without(?: any)?|free of(?: any)?|neither|nor) "
     "(?:(?!(?i:since|after|due|because|from|for|by|in|on|at|with|to|until|when|as|longer|more|"
     "reason|response|progress|route|space)\\b)[A-Za-z_/'-]+ ){0,3}$"},
    {STANCE_DENIES, PART_CLAUSE, "\\b(?i:(?:not|never)(?: been| yet| yet been)?) $"},
    /* "0 oom_kill events": a count has its noun in the plural, "GPU 0 error" has none */
    {STANCE_DENIES, PART_ACROSS,
     "(?<![\\w.:-])(?<!(?i:gpu|dev) )(?<!(?i:rank|node|task|host) )(?<!(?i:device|worker|scaler) )"
     "(?<!(?i:process|replica) )(?<!(?i:pid) )0 (?:(?!(?:on|of|in|at|to|for|with|from)\\b)"
     "[A-Za-z_-]+ ){0,4}[A-Za-z_-]*[^s \\W]s(?![\\w-])"},
    /* "15 ok, 0 failed" */
    {STANCE_DENIES, PART_ACROSS,
     "(?:[,;:(|/] ?|\\band )0 (?i:failed|failing|unhealthy|bad|faulty)(?![\\w-])"},
    {STANCE_DENIES, PART_BEHIND,
     "^[a-z]{0,3}(?: [A-Za-z_-]+){0,3}? ?\\b(?:not|never) (?:been )?"
     "(?:detected|seen|present|encountered|observed|reported)\\b"},
    /* "OOM check: disabled", "nan_found = 0", "\"OOMKilled\": false"; "true" is no denial */
    {STANCE_DENIES, PART_BEHIND,
     "^[A-Za-z_]{0,24}[\"']?(?: [A-Za-z_-]+){0,3}? ?(?:[:=?]|\\.\\.\\.) ?(?i:0+(?:\\.0+)?|none|no|"
     "nil|null|false|ok(?:ay)?|pass(?:ed)?|disabled|off|n/?a|clean|clear|healthy|good|handled|"
     "never|\\[ ?\\]|\\{ ?\\})(?:[ ,;.)\\]}'\"]*$|[,;)|}] ?)"},
    {STANCE_DENIES, PART_BEHIND,
     "^[a-z]{0,3}(?: [A-Za-z_-]+){0,2}? (?:is|are|was|were) "
     "(?:handled|disabled|enabled|expected|harmless|fine|ok)\\b"},
    {STANCE_DENIES, PART_BEHIND,
     "^[a-z]{0,3}(?: [A-Za-z_-]+){0,2}? (?:(?:is |are )?(?:unlikely|impossible)|"
     "can be avoided|(?:was |is )?fixed (?:in|by))\\b"},
    /* what is kept ready against it */
    {STANCE_WATCHES, PART_BEHIND,
     "^[\"']?[a-z]{0,3}(?: [A-Za-z_-]+){0,2}?[ _-](?i:checks?|checker|handlers?|handling|detection|"
     "detector|guard|protection|callback|hook|tests?|simulation|monitor(?:ing)?|watcher|listener|"
     "notices?)\\b(?: [A-Za-z_-]+){0,2}?:? (?i:enabled|disabled|installed|registered|active|"
     "started|passed|ok|succeeded|skipped|ready|running|set up|is on|is off|on$|true$)\\b"},
    {STANCE_WATCHES, PART_ACROSS,
     "\\b(?i:poll(?:s|ing)|watch(?:es|ing)) (?:[\\w/-]+ ){1,4}?for\\b"
     "(?!.*\\b(?i:fail(?:s|ed|ure)?|exceeded|positive|unhealthy|bad)\\b)[^:;.]{0,120}"},
    {STANCE_WATCHES, PART_CLAUSE,
     "\\b(?i:handler|hook|callback|listener|watcher|detector|guard|monitor)s? (?:for|on|against) "
     "[^:]{0,20}$"},
    {STANCE_WATCHES, PART_ACROSS,
     "\\b(?i:check(?:s|ed|ing)?|test(?:s|ed|ing)?|verif(?:y|ies|ied|ying)|look(?:s|ing)?|"
     "watch(?:es|ing)?|monitor(?:s|ing)?|poll(?:s|ing)?|listen(?:s|ing)?|scan(?:s|ned|ning)?|"
     "prob(?:e|es|ing)|search(?:es|ing)?|inspect(?:s|ing)?|guard(?:s|ing)?|protect(?:s|ed|ion)?|"
     "robust) (?:for|that|whether|if|against)\\b"
     "(?!.*\\b(?i:fail(?:s|ed|ure)?|exceeded|positive|unhealthy|bad)\\b)[^:;.]{0,120}"},
    {STANCE_WATCHES, PART_CLAUSE,
     "^ ?(?:[Ii]f|[Ii]n case(?: of)?|[Uu]nless|[Tt]o (?:avoid|prevent)|[Ww]hen(?:ever)?|"
     "[Ww]aiting for|[Hh]ow to (?:avoid|fix|debug)|"
     "[Ww]ill (?:stop|exit|abort|retry|restart|requeue) (?:on|if|when))\\b.{0,80}$"},
    {STANCE_WATCHES, PART_CLAUSE, "^ ?[Oo]n (?:an? )?$"},
    {STANCE_WATCHES, PART_CLAUSE,
     "\\b(?:[Ss]kip|[Ss]top|[Aa]bort|[Hh]alt|[Ee]xit|[Rr]aise|[Rr]etry|[Rr]estart)s?\\b.{0,40}"
     "\\b(?:if|when|on)\\b.{0,30}$"},
    {STANCE_WATCHES, PART_CLAUSE,
     "\\b(?i:avoids?|avoiding|prevents?|preventing|simulat(?:e|es|ed|ing)|inject(?:s|ed|ing)?|"
     "tolerat(?:e|es|ed|ing)|catch(?:es|ing)?|suppress(?:es|ed|ing)?|ignor(?:es|ed|ing)|"
     "recover(?:s|ed) from|surviv(?:es|ed|ing)) "
     "(?:(?:a|an|the|any|all|fake|possible|potential|one|this|simulated) )*$"},
    /* the same line tells how it goes on; "try" and the like begin an advice, no such thing */
    {STANCE_COPES, PART_BEHIND,
     UP_TO_A_BREAK
     "(?i:fall(?:s|ing)? back|fallback|skipp(?:ed|ing)|ignor(?:ed|ing)|retr(?:ied|ying)|"
     "continu(?:es|ing)|proceeding|default(?:s|ing) to|going on|moving on|training from|"
     "starting (?:from|with|over|fresh|training)|switching to|reverting to|"
     "resuming|"
     "trying (?:again|(?:the )?next|another|a? ?smaller|with|\\d+)|re-?(?:building|downloading)|"
     "will (?:use|start|skip|ignore|retry|continue|proceed|fall back|train|not be used|"
     "be (?:used|ignored|skipped|retried|disabled|created|slower|unavailable))|"
     "harmless|not fatal|safe to ignore|can be ignored)\\b"},
    {STANCE_COPES, PART_BEHIND,
     UP_TO_A_BREAK "(?i:using|uses|disabl(?:ed|ing)|substituting|reducing|lowering|halving|"
                   "clamping|logging to|creating|recomputing|optional)\\b",
     .prose = true},
    {STANCE_COPES, PART_BEHIND, "^.{0,60}(?:\\(expected\\b|\\b(?:as|is) expected\\b)"},
    {STANCE_COPES, PART_BEFORE,
     "^(?i:skipp(?:ing|ed)|ignor(?:ing|ed)|disabl(?:ing|ed))\\b.{0,60}$"},
    /* a module that is not there, told in prose and not by an exception */
    {STANCE_COPES, PART_LINE,
     "^(?![A-Za-z_.]*(?:Error|Exception)\\b)(?!.{0,40}\\b(?i:error|fatal|critical|abort\\w*)\\b)"
     ".{0,60}\\b(?:(?i:could not|couldn't|cannot|can't|unable to|failed to) import|"
     "could not be imported|(?:is )?not (?:installed|available|importable)|is "
     "optional|disabled|unavailable)\\b.{0,60}"
     "(?:No module named|cannot import name|ImportError)"},
    /* what became of an earlier run, told by the one that follows it */
    {STANCE_QUOTES, PART_CLAUSE,
     "\\b(?i:(?:previous|prior|earlier) (?:job|run|attempt|session|container|process|launch|task|"
     "pod|instance)\\b.{0,40}|last |of (?:the )?last \\w+.{0,20})$"},
    {STANCE_QUOTES, PART_ACROSS,
     "\\b(?i:previous|prior|earlier) (?i:job|run|attempt|session|container|process|launch|task|"
     "pod|instance)\\b[^:;.]{0,80}"},
    /* source code, tests, and what people wrote */
    {STANCE_QUOTES, PART_CODE,
     "^[ \\t>+-]*(?:\\d+ *[|:]? *)?(?:(?:assert|raise|except|elif|print)\\b|"
     "self\\.|log(?:ger|ging)?\\.|warnings\\.|pytest\\.|[a-z_][\\w.]* = )"},
    {STANCE_QUOTES, PART_CODE, "\\braise [A-Za-z_.]+\\("},
    {STANCE_QUOTES, PART_BEFORE, "^[ \\t>+-]*(?:\\d+ *[|:] *)?(?:#|//) "},
    {STANCE_QUOTES, PART_BEFORE, "[)\\]] {1,4}# "},
    {STANCE_QUOTES, PART_BEFORE,
     "^\\W*(?i:fix(?:ed|es)?|changelog|known (?:issue|bug)s?|tips?|notes?|help|usage|hints?)\\b"
     "[^:]{0,20}:"},
    {STANCE_QUOTES, PART_LINE,
     "^(?:FAILED|ERROR|PASSED|XFAIL|XPASS|SKIPPED|RERUN) \\S+\\.py(?:::| )|^E {3,}\\S|\\.py::\\w+"},
    {STANCE_QUOTES, PART_BEFORE, "\\bQ: .{3,200}\\bA: "},
    {STANCE_QUOTES, PART_BEFORE,
     "^(?:\\W|\\b(?i:rank|step|iter|iteration|gpu|epoch)[ "
     ":=#]{0,2}\\d+)*(?i:(?:sample|generated|model|example|decoded|user|eval)(?:[ _-]#?\\d+)?[ _-]"
     "(?:text|outputs?|prompts?|samples?|completions?|messages?|inputs?|generations?|answers?)|"
     "prompts?|completions?|questions?|answers?|instructions?|human|assistant|user|caption|"
     "continuation|generat(?:ed|ion)|decoded|q|a)(?: ?#?\\d+)?[\"']?\\s*(?::|=>|>) "},
    {STANCE_QUOTES, PART_BEFORE,
     "[\"'](?:prompt|text|question|answer|instruction|completion|content|input|target|response)"
     "[\"']\\s*:\\s*[\"'][^\"]*$"},
    {STANCE_QUOTES, PART_BEFORE,
     "\\b(?:[Mm]y|I'm|I've|I (?:am|have|get|got|see|tried|ran|was|do|did|can|need)|"
     "[Hh]ow (?:do|can|to)|[Ww]hy (?:do|does|is|did))\\b[^:]*$"},
    {STANCE_QUOTES, PART_ACROSS,
     "(?:^|(?<=[:>.!?] ))(?:[Ww]h(?:y|at|ere|en|o)|[Hh]ow|[Ii]s|[Dd]oes|[Dd]o|[Aa]re|[Ww]as|"
     "[Dd]id|[Cc]an|[Ss]hould|[Cc]ould)\\b[^.!:;]{0,120}\\?"},
};

/* "doc 17: ", "tokens -> ", "eval sample 12 | ": what follows is no line of a kernel or scheduler.
 */
#define DATUM                                                                                      \
    "^\\W*(?i:(?:eval|test|train|valid|input|output) )?(?i:tokens?|docs?|documents?|samples?|"     \
    "records?|rows?|items?|examples?|texts?|sentences?|chunks?|prompts?|labels?|strings?)"         \
    "[ _#-]{0,2}\\d* ?(?::|->|=>|>|\\|) .{0,40}$"

struct stances {
    struct pattern *exception; /* at the beginning of a message */
    struct pattern *datum;     /* what a program prints of its data, up to the words */
    struct pattern *patterns[ARRAY_SIZE(rules)];
};

int stances_new(struct stances **ret, struct err *e)
{
    _cleanup_(stances_freep) struct stances *s = xnew(struct stances);

    if (pattern_new("^[A-Za-z_][A-Za-z0-9_.]*(?:Error|Exception)\\b", &s->exception, e) < 0)
        return -EINVAL;
    if (pattern_new(DATUM, &s->datum, e) < 0)
        return -EINVAL;
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
        int r = pattern_new(rules[i].text, &s->patterns[i], e);

        if (r < 0)
            return err_prefix(e, r, "stance rule %zu", i);
    }
    *ret = TAKE(s);
    return 0;
}

struct stances *stances_free(struct stances *s)
{
    if (!s)
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
        pattern_free(s->patterns[i]);
    pattern_free(s->exception);
    pattern_free(s->datum);
    free(s);
    return NULL;
}

/* A line around the words, no more of it than is looked at. */
struct view {
    const char *s;
    size_t len, start, end; /* of the words */
    size_t clause;          /* where the clause begins that they end */
    bool is_exception;      /* the line begins with the name of one */
};

/* Behind a mark that ends a thought; a point or colon within a name or number is none. */
static size_t clause_begin(const char *s, size_t start)
{
    for (size_t i = start; i > 1; i--)
        if ((s[i - 1] == ' ' && strchr(",;:.!?)]|", s[i - 2])) || s[i - 1] == '(' ||
            s[i - 1] == '"')
            return i;
    return 0;
}

static struct view view_of(const char *line, size_t len, size_t start, size_t end)
{
    size_t from = start > LOOK_BYTES ? start - LOOK_BYTES : 0;
    size_t to = len - end > LOOK_BYTES ? end + LOOK_BYTES : len;
    struct view v = {.s = line + from, .len = to - from, .start = start - from, .end = end - from};

    v.clause = clause_begin(v.s, v.start);
    return v;
}

/* Whether s[at] is within quotes or round brackets. An apostrophe within a word opens nothing. */
static bool is_enclosed(const char *s, size_t at)
{
    char quote = '\0';
    int depth = 0;

    for (size_t i = 0; i < at; i++) {
        if (quote) {
            quote = s[i] == quote && s[i - 1] != '\\' ? '\0' : quote;
            continue;
        }
        if (s[i] == '"' || (s[i] == '\'' && (i == 0 || !isalnum((unsigned char)s[i - 1]) ||
                                             strchr("frbu", s[i - 1]))))
            quote = s[i];
        depth += s[i] == '(';
        depth -= s[i] == ')' && depth > 0;
    }
    return quote || depth > 0;
}

static bool holds(const struct rule *r, struct pattern *p, struct pattern_space *space,
                  const struct view *v)
{
    size_t from, to;

    if (r->prose && v->is_exception)
        return false;
    switch (r->part) {
    case PART_CLAUSE:
        return pattern_match(p, space, v->s + v->clause, v->start - v->clause, 0, true, &from, &to);
    case PART_BEFORE:
        return pattern_match(p, space, v->s, v->start, 0, true, &from, &to);
    case PART_BEHIND:
        return pattern_match(p, space, v->s + v->end, v->len - v->end, 0, true, &from, &to);
    case PART_ACROSS:
        return pattern_match(p, space, v->s, v->len, 0, true, &from, &to) && from < v->end &&
               to > v->start;
    case PART_CODE:
        return is_enclosed(v->s, v->start) &&
               pattern_match(p, space, v->s, v->len, 0, true, &from, &to);
    case PART_LINE:
        return pattern_match(p, space, v->s, v->len, 0, true, &from, &to);
    }
    return false;
}

enum stance stance_of(const struct stances *s, struct pattern_space *space, const char *line,
                      size_t len, size_t start, size_t end)
{
    struct view v = view_of(line, len, start, end);
    size_t from, to;

    v.is_exception = pattern_match(s->exception, space, line, len, 0, true, &from, &to);
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
        if (holds(&rules[i], s->patterns[i], space, &v))
            return rules[i].stance;
    return STANCE_TELLS;
}

bool stance_quotes_data(const struct stances *s, struct pattern_space *space, const char *line,
                        size_t start)
{
    size_t from, to;

    return pattern_match(s->datum, space, line, start, 0, true, &from, &to);
}
