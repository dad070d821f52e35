# SPDX-License-Identifier: Apache-2.0
"""The documentation says what the program does."""

import re
import shlex
import shutil
import subprocess

import pytest


def pages(top):
    listed = [*top.glob("*.md"), *(top / "docs").rglob("*.md")]
    assert top / "README.md" in listed and len(listed) > 5
    return listed


def test_links_lead_somewhere(top):
    for path in pages(top):
        text = path.read_text(encoding="utf-8")
        headings = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-")
                    for h in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if target.startswith("http"):
                continue
            name, _, anchor = target.partition("#")
            assert not name or (path.parent / name).exists(), f"{path}: {target}"
            assert name or anchor in headings, f"{path}: {target}"


def test_named_files_exist(top):
    """Paths in backquotes; NAME and other capitals stand for something."""
    for path in pages(top):
        for name in re.findall(r"`((?:src|tools|tests|catalog|docs|man|conf|demo|bench)/[\w./-]+)`",
                               path.read_text(encoding="utf-8")):
            if not re.search(r"[A-Z]{3,}", name.rsplit("/", 1)[-1].split(".")[0]) or name.endswith(".md"):
                assert (top / name).exists(), f"{path}: {name}"


def test_what_it_needs_to_run_is_named(reknit, top):
    """By its package, where dpkg knows it."""
    if not shutil.which("dpkg-query") or not shutil.which("readelf"):
        pytest.skip("no dpkg or no readelf")
    text = (top / "docs/OPERATIONS.md").read_text(encoding="utf-8")
    dynamic = subprocess.run(["readelf", "-d", reknit.path], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
    assert len(needed) > 5
    for library in set(needed) - {"libc.so.6", "libm.so.6"}:  # of the C library
        found = subprocess.run(["dpkg-query", "-S", f"*/{library}"], capture_output=True, text=True).stdout
        packages = {line.split(":")[0] for line in found.splitlines()}
        assert not packages or any(package in text for package in packages), f"{library}: {packages}"


def decision_rules(top):
    source = "".join(p.read_text(encoding="utf-8") for p in (top / "src/core/policy").glob("*.c"))
    return set(re.findall(r'\b(?:STOP|RESTART|COMPLETE|WAIT|used_up)\(ret, "([a-z-]+)"', source))


def test_every_rule_is_explained(top):
    text = (top / "docs/OPERATIONS.md").read_text(encoding="utf-8")
    rules = decision_rules(top)
    assert len(rules) > 10
    for rule in rules:
        assert f"`{rule}`" in text, rule
    table = text.split("| rule |", 1)[1].split("\n\n", 1)[0]
    for rule in re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE):
        assert rule in rules, f"{rule} is explained and does not exist"


@pytest.mark.parametrize("page", ["docs/OPERATIONS.md", "man/reknit-policy.5.scd",
                                  "conf/policy.yaml"])
def test_every_key_of_the_policy_is_explained(reknit, top, page):
    shown = reknit("config", "show").stdout
    keys = set(re.findall(r"^ *([a-z_-]+):", shown, re.MULTILINE))
    keys |= set(re.findall(r"[{,] ?([a-z_]+):", shown))
    assert {"max_restarts", "timeout_min", "gpu-oom", "retries"} <= keys
    text = (top / page).read_text(encoding="utf-8").replace("\\", "")
    for key in keys:
        assert re.search(rf"(?<![a-z]){re.escape(key)}(?![a-z])", text), key


def test_the_shown_default_is_the_documented_one(reknit, top, tmp_path):
    documented = reknit("config", "show", top / "conf/policy.yaml").stdout.split("\n", 1)[1]
    env = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    built_in = reknit("config", "show", env=env).stdout.split("\n", 1)[1]
    assert documented == built_in


def test_every_word_of_the_catalogue_is_explained(top):
    page = (top / "docs/CATALOG.md").read_text(encoding="utf-8")
    manual = (top / "man/reknit-catalog.5.scd").read_text(encoding="utf-8")
    kinds = (top / "src/core/model/kinds.c").read_text(encoding="utf-8")
    roles = re.findall(r'\[ROLE_\w+\] = "([a-z]+)"', kinds)
    assert len(roles) == 11
    groups = re.findall(r"`([a-z_]+)`", page.split("| group |", 1)[1].split("\n\n", 1)[0])
    for word in roles + [g for g in groups if g not in ("nan", "inf")]:
        assert f"`{word}`" in page and f"*{word}*" in manual, word


def test_the_walkthrough_of_an_own_entry_works(reknit, top, tmp_path):
    part = (top / "docs/CATALOG.md").read_text(encoding="utf-8").split("## An entry of your own", 1)[1]
    blocks = re.findall(r"```(\w*)\n(.*?)```", part, re.DOTALL)
    assert [kind for kind, _ in blocks[:2]] == ["yaml", ""]
    (tmp_path / "catalog.d").mkdir()
    (tmp_path / "catalog.d/ours.yaml").write_text(blocks[0][1])
    line = re.search(r"explain '(.*)'", blocks[1][1]).group(1)
    (tmp_path / "slurm-4242.out").write_text(f"step 1/50 loss 2.0\n{line}\n")
    commands = [shlex.split(c, comments=True) for c in blocks[1][1].splitlines()]
    assert [c[0] for c in commands] == ["reknit"] * 3
    done = [reknit(*c[1:], cwd=tmp_path) for c in commands]
    for d in done:
        assert d.returncode == 0, d.stdout + d.stderr
    assert "site.feature_store" in done[1].stdout and "site.feature_store" in done[2].stdout


def test_build_files_and_manual_pages_name_their_licence(top):
    """tools/check-style looks at the C files."""
    listed = [top / "meson.build", top / "meson_options.txt", *(top / "man").glob("*.scd")]
    for folder in ("src", "tests", "man", "bench", "catalog"):
        listed += (top / folder).rglob("meson.build")
    assert len(listed) > 25
    for path in listed:
        first = path.read_text(encoding="utf-8").splitlines()[:2]
        assert any(re.fullmatch(r"[#;] SPDX-License-Identifier: Apache-2\.0", x) for x in first), path
