# SPDX-License-Identifier: Apache-2.0
"""The rows of the table that `make bench` prints: what was measured, beside its budget."""

import json
import os


class Rows(list):
    def add(self, what, measured, budget, kept):
        """All texts but the last. Said at once, and kept for bench/run."""
        row = {"what": what, "measured": measured, "budget": budget, "kept": bool(kept)}
        self.append(row)
        print(line(row), flush=True)
        if path := os.environ.get("REKNIT_BENCH_ROWS"):
            with open(path, "a", encoding="utf-8") as f:
                f.write(json.dumps(row) + "\n")

    def status(self):
        return 0 if all(row["kept"] for row in self) else 1


def line(row):
    return f"{'kept  ' if row['kept'] else 'MISSED'} {row['what']:58} {row['measured']:>24}   {row['budget']}"
