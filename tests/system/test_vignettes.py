# SPDX-License-Identifier: Apache-2.0
"""reknit diagnose on tests/fixtures/diagnose/vignettes.txt: short logs, one case each, exact."""

import json
import pathlib

import pytest

FILE = pathlib.Path(__file__).parents[1] / "fixtures/diagnose/vignettes.txt"


def read_vignettes():
    cases = []
    for line in FILE.read_text().splitlines():
        if line.startswith("=== "):
            name, rest = line[4:].split(": ", 1)
            words = rest.split()
            cases.append((name, words[0], dict(w.split("=", 1) for w in words[1:]), []))
        elif cases:
            cases[-1][3].append(line)
    return cases


def check_named(got, want):
    must = {w for w in want if not w.endswith("?")}
    may = must | {w[:-1] for w in want if w.endswith("?")}
    assert must <= got <= may


CASES = read_vignettes()


@pytest.mark.parametrize("name,kind,want,lines", CASES, ids=[c[0] for c in CASES])
def test_vignette(reknit, tmp_path, name, kind, want, lines):
    log = tmp_path / f"{name}.log"
    log.write_text("\n".join(lines) + "\n")
    run = reknit("diagnose", "--format", "json", log)
    assert run.returncode == 0, run.stderr
    v = json.loads(run.stdout)
    assert v["class"] == kind, v["summary"]
    for key in ("cause", "advice"):
        assert key not in want or v[key] in want[key].split("|"), v["summary"]
    for key in ("nodes", "ranks", "devices"):
        check_named({str(x) for x in v["culprits"][key]},
                    want[key].split(",") if key in want else [])
