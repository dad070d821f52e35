/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_FILE_RANKS_H
#define REKNIT_CLI_FILE_RANKS_H

/* Whose output a file holds, as its name tells. Launchers write one file for each process, and what
 * a process prints does not say who it is. A packing's ending (.gz, .zst) does not count. These
 * names are understood:
 *
 *   rank3.log  rank_0003.out  worker-7.err  proc.2
 *       the rank: a word (rank, mpirank, worker, proc, procid) with a number behind it
 *
 *   rank.3/stdout
 *       the same at the beginning of the folder's name, as mpirun --output-filename makes it
 *
 *   local_rank3.log
 *       the rank within the node
 *
 *   attempt_0/3/stderr.log
 *       torchrun --log-dir: the rank within the node; the rank where all files are of one node
 *
 *   log.3  train-3.out  out.n5.3
 *       the last number, where the names of several files differ in numbers alone, and the last
 *       ones go from 0 up, each once. A host's name before it (srun -o out.%N.%t) is the node
 *
 * Not understood, because they mean something else: node_rank1.log, node-1.log (a file for each
 * node), train.log.1 (rotated), slurm-4242_7.out (a job array), attempt-1.log, and numbers of
 * workers beside a master or chief, who is rank 0. */

#include "core/model/signal.h"

#include <stddef.h>

/* One entity for each path: its rank, local_rank and node, as far as they are known. */
void file_ranks_read(const char *const *paths, size_t n, struct entity *ret);

#endif
