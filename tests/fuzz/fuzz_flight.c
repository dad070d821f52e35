/* SPDX-License-Identifier: Apache-2.0 */

/* Dumps of a flight recorder, pickles and JSON: whatever one is, it is refused with a reason and
 * leaves nothing behind, or what is kept of it is in order and within its limits; and judging it
 * beside itself blames only ranks that there are or should be, one reason each. */

#include "base/cleanup.h"
#include "core/measure/flight_judge.h"
#include "flight/dump.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rank(const struct flight *f, const struct flight_rank *r)
{
    assert(r->places.n <= FLIGHT_PLACES_MAX);
    for (size_t i = 0; i < r->ops.n; i++) {
        const struct flight_op *op = &r->ops.v[i];

        assert(op->place < r->places.n && op->peer >= -1);
        assert(op->what < f->names.n || op->what == FLIGHT_NONE);
        assert(i == 0 || op[-1].place < op->place ||
               (op[-1].place == op->place && op[-1].seq <= op->seq));
    }
}

static void check_judgement(const struct flight *f, const struct flight_judgement *j)
{
    assert(flight_verdict_name(j->verdict));
    assert(j->culprits.n == 0 || j->verdict == FLIGHT_STALL || j->verdict == FLIGHT_DESYNC);
    for (size_t i = 0; i < j->culprits.n; i++) {
        const struct flight_culprit *c = &j->culprits.v[i];

        assert(i == 0 || c[-1].rank < c->rank);
        assert(flight_reason_name(c->reason));
        assert((c->reason == FLIGHT_NODUMP) == !flight_find_rank(f, c->rank));
        assert(!intset_has(&j->unread, c->rank));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tree tree; /* scratch is kept from dump to dump, as folders are read */
    struct flight_judgement judgement;
    struct flight flight = {0};

    for (int32_t rank = 0; rank < 3; rank++) {
        struct flight_rank *r = flight_add_rank(&flight, rank);
        struct err e = {0};
        /* The second one is cut, so that ranks differ. */
        size_t len = rank == 1 && size > 0 && data[0] % 2 ? size / 2 : size;

        if (dump_read((const char *)data, len, &tree, &flight, r, &e) < 0) {
            assert(e.code < 0 && e.text[0]);
            assert(r->places.n == 0 && r->ops.n == 0 && r->status.n == 0);
            r->unread = true;
        }
        check_rank(&flight, r);
    }
    flight_judge(&flight, &judgement);
    check_judgement(&flight, &judgement);
    flight_judgement_done(&judgement);
    flight_done(&flight);
    return 0;
}
