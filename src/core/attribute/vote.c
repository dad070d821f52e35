/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/culprit.h"

#include "base/str.h"

#include <string.h>

/* Pairwise votes (algorithms b.2.5): who loses a connection names the other end. One reporter
 * proves nothing, either end or the path may be bad; two on different nodes that name one peer,
 * twice as often as any other, single it out. */

struct tally {
    char peer[PEER_NAME_LEN];
    uint32_t votes;
    char first_reporter[NODE_NAME_LEN];
    bool independent; /* reporters on two nodes */
};

#define PEERS_MAX 64

/* "10.4.17.38<51740>" and "[fe80::1]:51740" name one host. */
static void peer_host(const char *peer, char *ret, size_t size)
{
    size_t n = strcspn(peer, "<");
    const char *colon = memchr(peer, ':', n);

    if (colon && !memchr(colon + 1, ':', (size_t)(peer + n - colon - 1)))
        n = (size_t)(colon - peer);
    str_copy_n(ret, size, peer, n);
}

static void vote(struct tally *t, size_t *n, const struct signal *s)
{
    char host[PEER_NAME_LEN];
    size_t i = 0;

    peer_host(s->who.peer, host, sizeof(host));
    while (i < *n && !streq(t[i].peer, host))
        i++;
    if (i == PEERS_MAX)
        return;
    if (i == *n) {
        t[(*n)++] = (struct tally){0};
        STR_COPY(t[i].peer, host);
        STR_COPY(t[i].first_reporter, s->who.node);
    }
    t[i].votes++;
    t[i].independent |=
        *s->who.node && *t[i].first_reporter && !streq(t[i].first_reporter, s->who.node);
}

static const struct tally *winner(const struct tally *t, size_t n)
{
    const struct tally *best = NULL;
    uint32_t second = 0;

    for (size_t i = 0; i < n; i++) {
        if (!best || t[i].votes > best->votes) {
            second = best ? best->votes : 0;
            best = &t[i];
        } else if (t[i].votes > second) {
            second = t[i].votes;
        }
    }
    return best && best->independent && best->votes >= 2 * second ? best : NULL;
}

/* An address, or an id that a cloud gave to the instance: no name that a scheduler knows. */
static bool is_address(const char *host)
{
    if (host[0] == 'i' && host[1] == '-' && strlen(host) >= 10 &&
        strspn(host + 2, "0123456789abcdef") == strlen(host + 2))
        return true;
    return strspn(host, "0123456789abcdefABCDEF.:%") == strlen(host);
}

static size_t count_votes(const struct judge *j, struct tally *t)
{
    size_t n = 0;

    for (size_t i = 0; i < j->n_current; i++)
        if (j->current[i]->s.blame == BLAME_PEER && *j->current[i]->s.who.peer)
            vote(t, &n, &j->current[i]->s);
    return n;
}

/* The name by which the scheduler knows the peer, NULL: unknown. */
static const char *peer_node(const struct judge *j, const char *peer)
{
    return is_address(peer) ? roster_node_at(&j->e->roster, peer) : peer;
}

/* Others know a node by its full name, or by that of the network it is reached through. */
static bool is_name_of(const char *name, const char *node)
{
    size_t n = strlen(node);

    return strncmp(name, node, n) == 0 && (name[n] == '\0' || name[n] == '.');
}

bool vote_names(const struct judge *j, const char *node)
{
    struct tally t[PEERS_MAX];
    const struct tally *best = winner(t, count_votes(j, t));
    const char *name = best ? peer_node(j, best->peer) : NULL;

    return name && is_name_of(name, node);
}

void culprit_by_vote(struct judge *j)
{
    struct tally t[PEERS_MAX];
    size_t n = count_votes(j, t);
    const struct tally *best = winner(t, n);

    if (!best) {
        if (n > 0)
            ruled_add(j, "one end of a broken connection",
                      "no two reporters on different nodes point at the same peer");
        return;
    }
    if (j->in->cause == CAUSE_UNKNOWN)
        j->in->cause = CAUSE_NETWORK;
    if (j->in->confidence < 60)
        j->in->confidence = 60;
    culprit_node(j, peer_node(j, best->peer));
}
