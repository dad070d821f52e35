/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_SPEAKER_H
#define REKNIT_EXTRACT_SPEAKER_H

/* The rank that a line says it is printed by, in the many ways of loggers that people configure:
 * "rank 3: ", "[Rank 3/8] ", "(rank=3) ", "rank3 | ", "| ERROR | rank 3 | ". */

#include <stddef.h>
#include <stdint.h>

/* Right at the beginning of s. Returns its bytes, with what separates it from the message, 0 = none
 * is there. */
size_t speaker_take(const char *s, size_t len, int32_t *ret_rank);

/* Behind levels and names of loggers, too; RANK_NONE = none. What is told of a rank in the middle
 * of a sentence is none of its own words. */
int32_t speaker_find(const char *s, size_t len);

#endif
