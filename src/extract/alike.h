/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_ALIKE_H
#define REKNIT_EXTRACT_ALIKE_H

/* Lines that are alike: of one length, and different in the values of their digits alone. Most of a
 * large log is that, and what no digit changes needs to be found out for one of them only. It is
 * ten times as fast to tell that a line is like one that is known as to search it for words. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ALIKE_BYTES_MAX 1024 /* of a line; longer ones are not remembered */
#define ALIKE_LINES_MAX 128  /* remembered; the one not seen for longest makes room */

struct alike;

struct alike *alike_new(void);
struct alike *alike_free(struct alike *a);

/* A word that lines must not hold, whatever their digits. Only those with digits are of interest: a
 * line that holds another should not be remembered at all. */
void alike_refuse(struct alike *a, const char *word, size_t len);

/* A line with its LF. Returns whether it is remembered now: not if it is too long, or would hold a
 * refused word if it had other digits, in either case of letters. */
bool alike_remember(struct alike *a, const char *line, size_t len);

/* How many bytes from data on are whole lines like those remembered; adds their number. Lines near
 * the end of the data are left out, for more bytes than theirs are compared at once. */
size_t alike_skip(struct alike *a, const char *data, size_t len, uint64_t *lines);

#endif
