/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_WIRE_WORD_H
#define REKNIT_WIRE_WORD_H

/* A word that nobody can have heard before: what is sealed with it was sealed for now. */

#define WORD_LEN 33 /* with its NUL */

/* -EIO: the kernel has no random numbers. */
int word_make(char ret[WORD_LEN]);

#endif
