/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_MODEL_MODE_H
#define REKNIT_CORE_MODEL_MODE_H

/* How far reknit may go with a job: who said what, and what follows. The terms (rules and comment)
 * say what is allowed. An operator's word about the job stands in their place until an operator
 * says otherwise. The owner's wish lowers what is allowed, and raises nothing: when that falls
 * below it, what is allowed holds. Each takes back his own word, and no other's.
 * docs/decisions/013 */

#include "core/model/event.h"

struct mode_words {
    bool told, ordered, wished;
    enum mode terms, order, wish;
};

/* An operator's word ends the wish that was said before it, for good. */
void mode_hear(struct mode_words *w, const struct mode_facts *f);

/* The most that the owner may wish for. */
enum mode mode_allowed(const struct mode_words *w);

/* Of somebody who was heard. */
enum mode mode_in_force(const struct mode_words *w);

#endif
