"""What the documentation says is what happens: its code runs, its outputs are printed, its examples and its build work.

In a ```python block, comment lines right below a statement that prints are its output, to the letter. A block whose
first line is `# name.py` is that file: the blocks after it can import it. A block that shows an integration is left
out where the package that it is with is not installed.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import os
import pydoc
import re
import subprocess
import sys
import types
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

import randomist as rd
from randomist import _lookup

ROOT = Path(__file__).parents[1]
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)
PAGES = [ROOT / "README.md", *PAGES]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SMALLER = {  # what long examples are given, so that they run sooner; the slow tests run them as they are
    "examples/log_to_live.py": ["--visits", "1200", "--workers", "3"],
    "examples/your_own_learner.py": ["--runs", "2"],
}
MANY_RUNS = [  # pages with averages of many runs, which take long: `make test` makes two of each
    ROOT / "docs" / page
    for page in (
        "beyond/ablation.md",
        "beyond/optimism.md",
        "learners/identify.md",
        "learners/index.md",
        "learners/kl-ucb.md",
        "learners/realist.md",
    )
]
DIRECTIVE = re.compile(r"^\.\. (currentmodule|auto[a-z]+):: ([\w.]+)$", re.MULTILINE)
FILE = re.compile(r"# (\w+)\.py\n")
INTEGRATIONS = {"optuna": "optuna", "mlflow": "mlflow", "tensorboard": "tensorboardX"}
LINK = re.compile(r"\]\(([^)#\s]+)[^)\s]*\)")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(page: Path) -> list[tuple[int, str]]:
    """The python blocks of a page, with the line on which each begins."""
    found, begin = [], None
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if begin is None and line.startswith("```python"):
            begin = number + 1
        elif begin is not None and line.startswith("```"):
            found.append((begin, "\n".join(lines[begin:number])))
            begin = None
    assert begin is None, f"{name(page)} does not end the block of line {begin}"
    return found


def can_run(source: str) -> bool:
    """Whether the packages are installed that a block's integrations, or its device, need."""
    needed = [package for name, package in INTEGRATIONS.items() if f"randomist.integrations.{name}" in source]
    needed += ["jax"] if "device=" in source else []
    return all(importlib.util.find_spec(package) is not None for package in needed)


def shown_below(lines: list[str], end: int) -> str:
    """The comment lines right after line `end`, without their marks."""
    shown = []
    for line in lines[end:]:
        if not (line == "#" or line.startswith("# ")):
            break
        shown.append(line[2:].rstrip())
    return "\n".join(shown)


def run_block(page: Path, begin: int, source: str, namespace: dict[str, Any], compared: bool = True) -> None:
    """Run a block, one statement after the other, and compare what is printed with what is shown."""
    for statement in ast.parse(source).body:
        printed = io.StringIO()
        module = ast.increment_lineno(ast.Module([statement], type_ignores=[]), begin)
        end = (statement.end_lineno or 0) - begin
        with contextlib.redirect_stdout(printed):
            exec(compile(module, str(page), "exec", dont_inherit=True), namespace)
        shown = shown_below(source.splitlines(), end)
        if compared and shown and printed.getvalue():
            output = "\n".join(line.rstrip() for line in printed.getvalue().splitlines())
            assert output == shown, f"{name(page)}, line {begin + end}: printed\n{output}"


@pytest.fixture
def clean_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page may register classes of its own; other tests must not see them."""
    monkeypatch.setattr(_lookup, "_registered", dict(_lookup._registered))


def run_page(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, few: bool = False) -> None:
    """Run a page's blocks. With `few`, those of many runs make two of each, so that what they print is not compared."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # where a page's classes say that they live
    for begin, source in blocks(page):
        if file := FILE.match(source):
            (folder / f"{file[1]}.py").write_text(source + "\n", encoding="utf-8")
        elif can_run(source):
            run_block(page, begin, source, vars(module), compared=not (few and "optimize_many(" in source))


@pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy:DeprecationWarning")  # MLflow's, of SQLAlchemy
@pytest.mark.usefixtures("clean_registries")
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_code_of_a_page_runs_and_prints_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page in MANY_RUNS:
        many = rd.optimize_many
        monkeypatch.setattr(rd, "optimize_many", lambda *args, seeds, **given: many(*args, seeds=2, **given))
    run_page(page, tmp_path, monkeypatch, few=page in MANY_RUNS)


@pytest.mark.slow
@pytest.mark.parametrize("page", MANY_RUNS, ids=name)
def test_the_averages_of_a_page_are_what_it_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert any("optimize_many(" in source for _, source in blocks(page))
    run_page(page, tmp_path, monkeypatch)


def test_files_of_pages_have_names_of_their_own() -> None:
    """Two pages that define a module of one name would see each other's, in this process."""
    found = [file[1] for page in PAGES for _, source in blocks(page) if (file := FILE.match(source))]
    assert found
    assert len(set(found)) == len(found), found
    assert not set(found) & sys.stdlib_module_names


def test_an_output_that_is_not_printed_is_noticed(tmp_path: Path) -> None:
    page = ROOT / "page.md"
    run_block(page, 0, "x = 1\n# a remark\nprint(x)\n# 1", {})
    with pytest.raises(AssertionError, match=r"page\.md, line 1: printed"):
        run_block(page, 0, "print(2)\n# 1", {})


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{name(page)} links to {target}, which does not exist"


def run_example(example: Path, arguments: list[str], folder: Path) -> None:
    command = [sys.executable, "-W", "error", example, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.strip()


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    run_example(example, SMALLER.get(name(example), []), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("example", SMALLER)
def test_a_long_example_runs_as_it_is(example: str, tmp_path: Path) -> None:
    run_example(ROOT / example, [], tmp_path)


def shown_command(page: Path, pattern: str, folder: Path) -> None:
    """Run the one command of a page that fits, in a folder: what it prints must be on the page."""
    text = page.read_text(encoding="utf-8")
    command = re.search(rf"^randomist ({pattern})$", text, re.MULTILINE)
    assert command
    randomist = Path(sys.executable).with_name("randomist")
    done = subprocess.run([randomist, *command[1].split()], cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in text, f"{name(page)}: {command[0]} printed\n{done.stdout}"


def test_the_command_line_prints_what_the_page_shows(tmp_path: Path) -> None:
    shown_command(ROOT / "docs/getting-started.md", r"run .*--seeds 20", tmp_path)


@pytest.mark.slow
def test_the_command_line_saves_and_plays_as_the_page_shows(tmp_path: Path) -> None:
    shown_command(ROOT / "docs/control.md", r"run mountain-car .*--save car\.json", tmp_path)
    shown_command(ROOT / "docs/control.md", r"play car\.json --out car\.gif", tmp_path)
    assert (tmp_path / "car.gif").stat().st_size > 0


def test_every_learner_has_its_page_and_its_row() -> None:
    assert {path.stem for path in (ROOT / "docs/learners").glob("*.md")} == {*rd.LEARNERS, "index"}
    index = (ROOT / "docs/learners/index.md").read_text(encoding="utf-8")
    for key, learner in rd.LEARNERS.items():
        assert f"]({key}.md) | `{learner.__name__}` | `{key}` |" in index


def listed_on(page: Path) -> dict[str, Any]:
    """What a page documents by autodoc, member by member of a whole module, and the modules that it is about."""
    found: dict[str, Any] = {}
    module = ""
    for directive, target in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
        full = target if target.startswith("randomist") else f"{module}.{target}"
        found[full] = pydoc.locate(full)
        if directive == "currentmodule":
            module = full
        elif directive == "automodule":
            found |= {f"{full}.{member}": thing for member, thing in vars(found[full]).items()}
    return found


def test_the_api_page_lists_every_public_name() -> None:
    listed = listed_on(ROOT / "docs/api.md")
    unknown = [full for full, thing in listed.items() if thing is None and not full.endswith("__")]
    assert not unknown, f"docs/api.md lists names that do not exist: {unknown}"
    missing = [public for public in rd.__all__ if not any(getattr(rd, public) is thing for thing in listed.values())]
    assert not missing, f"docs/api.md lacks {missing}"


def test_every_task_is_in_the_table() -> None:
    text = (ROOT / "docs/spaces-and-tasks.md").read_text(encoding="utf-8")
    assert set(rd.task_ids()) == set(re.findall(r"^\| `([a-z0-9-]+)` \|", text, re.MULTILINE))


def test_every_setting_of_a_learner_is_documented() -> None:
    common = (ROOT / "docs/learners/index.md").read_text(encoding="utf-8")
    for key, learner in rd.LEARNERS.items():
        text = common + (ROOT / f"docs/learners/{key}.md").read_text(encoding="utf-8")
        for setting in (field.name for field in fields(learner)):
            assert f"| `{setting}` |" in text, f"docs/learners/{key}.md says nothing of {setting}"


def test_help_has_an_entry_for_every_setting() -> None:
    for key, learner in rd.LEARNERS.items():
        told = "\n".join(vars(cls).get("__doc__") or "" for cls in learner.__mro__)
        lines = re.findall(r"^    (\w+(?:, \w+)*)$", told, re.MULTILINE)
        entries = {entry for line in lines for entry in line.split(", ")}
        missing = {field.name for field in fields(learner)} - entries
        assert not missing, f"no Parameters section of {key}, or of what it derives from, has {sorted(missing)}"


def test_the_citation_file_names_the_software_and_the_paper() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "version", "license", "preferred-citation"} <= citation.keys()
    assert citation["version"] == rd.__version__
    paper = citation["preferred-citation"]
    assert paper["type"] == "conference-paper"
    assert paper["title"] == "Policy Optimization as Online Learning with Mediator Feedback"
    assert [author["family-names"] for author in paper["authors"]] == ["Metelli", "Papini", "D'Oro", "Restelli"]
    assert paper["year"] == 2021


def test_the_changelog_has_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[?{re.escape(rd.__version__)}\]?", text, re.MULTILINE)


@pytest.mark.slow
def test_the_table_of_the_readme_is_what_the_demo_prints(tmp_path: Path) -> None:
    demo = [Path(sys.executable).with_name("randomist"), "demo", "--jobs", "2", "--out", tmp_path]
    done = subprocess.run(demo, capture_output=True, text=True, env=os.environ | {"COLUMNS": "120"}, timeout=3600)
    assert done.returncode == 0, done.stderr
    cell = re.compile(r"[\d,.]+ ± [\d,.]+")
    printed = [cell.findall(line) for line in done.stdout.splitlines() if cell.search(line)]
    shown = [cell.findall(line) for line in (ROOT / "README.md").read_text("utf-8").splitlines() if cell.search(line)]
    assert shown == printed


@pytest.mark.slow
def test_the_documentation_builds_without_warnings(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run(
        [*build, "-d", tmp_path / "trees", ROOT / "docs", tmp_path / "html"],
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "html" / "index.html").exists()


def test_every_promise_of_security_names_a_test_that_exists():
    """`folder/module::test`, of the folder that the head of the table names; `::test` is of the module before."""
    folder, module, promised = ROOT / "tests", "", 0
    for line in (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines():
        if said := re.search(r"held by \(in `(\S+)`\)", line):
            folder = ROOT / said[1]
        if not line.startswith("| "):
            continue
        for name in re.findall(r"`((?:[a-z_/]+)?(?:::\w+)?)`", line.rpartition(" | ")[2]):
            module, _, test = (name if not name.startswith("::") else module + name).partition("::")
            assert not test or f"def {test}(" in (folder / f"{module}.py").read_text(encoding="utf-8"), name
            promised += (folder / f"{module}.py").exists()
    assert promised >= 28
