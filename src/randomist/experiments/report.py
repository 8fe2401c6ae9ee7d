"""The report: one HTML file that works offline, with the verdict on every claim and where every curve comes from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from randomist._types import Array
from randomist.experiments.claims import Check, Claim, Verdict
from randomist.experiments.comparison import mean_interval
from randomist.experiments.contenders import Contender
from randomist.experiments.paper import EXPERIMENTS, QUICK
from randomist.experiments.report_page import (
    Look,
    Page,
    band_and_mean,
    details,
    kept,
    legend,
    measured,
    numbers,
    panels,
    table,
    text,
)
from randomist.experiments.specs import Cell, TaskSpec, to_toml
from randomist.experiments.store import Store, write_whole
from randomist.learners.box.grid_optimist import points_per_dimension

if TYPE_CHECKING:
    from randomist.experiments.chains import Chains

SIGNS = {"held": "✓", "did not hold": "✗", "unclear": "?"}
AXES = {"regret": "cumulative regret", "average_payoff": "average payoff"}
GRID_ROUNDS, GRID_DIMENSION = 5000, 4  # Figure 5, right
LEAD = """<p>What came out when the experiments below were run with the Python package <code>randomist</code>, which
implements <cite>Policy Optimization as Online Learning with Mediator Feedback</cite> (Metelli, Papini, D'Oro and
Restelli, AAAI 2021). Lines are means over runs that differ only in their seed; bands and ± are 95% intervals of the
mean by Student's t. Every experiment ends with the command, the settings and the versions that made its numbers.</p>"""


def write_report(
    out: Path, stores: Sequence[Store], claims: Sequence[Claim], *, chains: Chains | None = None
) -> tuple[Path, Path]:
    """Write `report.html` and `claims.json`; runs that are missing are left out of the means, and said to be."""
    out.mkdir(parents=True, exist_ok=True)
    page = Page("Report: " + (", ".join(store.experiment.name for store in stores) or "figures of the paper"))
    verdicts = dict.fromkeys(get_args(Verdict), 0) | Counter(claim.verdict for claim in claims)
    state = {"claims": [claim.state() for claim in claims], "verdicts": verdicts}
    if claims:
        quick = any(_command(store, out).endswith("--quick") for store in stores)
        _claims(page, claims, verdicts, QUICK if quick else "")
    for store in stores:
        _experiment(page, store, out)
    if chains is not None:
        _chains(page, chains)
    learners = [learner.name for store in stores for learner in store.experiment.learners]
    if not stores or "grid-optimist" in learners or any(store.experiment.name in EXPERIMENTS for store in stores):
        _grid(page)
    report, record = out / "report.html", out / "claims.json"
    write_whole(record, (json.dumps(state, indent=1, ensure_ascii=False) + "\n").encode())
    write_whole(report, page.written(LEAD, state).encode())
    return report, record


def _claims(page: Page, claims: Sequence[Claim], verdicts: dict[str, int], note: str) -> None:
    """Every claim with its verdict; the checks behind it open on request."""
    rows = [
        f"<tr><td>{claim.number}</td><td><details><summary>{text(claim.text)}"
        f'<span class="note">{_count(claim.checks)}</span></summary>'
        f'<ul class="checks">{"".join(map(_check, claim.checks))}</ul></details></td>'
        f"<td>{_badge(claim.verdict)}</td></tr>"
        for claim in claims
    ]
    page.section(
        "claims",
        "What the paper claims",
        f"<p>Of {len(claims)} claims, {', '.join(f'{n} {word}' for word, n in verdicts.items())}. A claim held if all "
        "of its checks did, and did not hold if any check did not. The same verdicts are in <code>claims.json</code>."
        f"</p>{f'<p><strong>{text(note)}</strong></p>' if note else ''}",
        '<div class="scroll claims" tabindex="0" role="region" aria-label="Claims and verdicts"><table><thead><tr>'
        '<th scope="col"><span aria-label="number">#</span></th><th scope="col">Claim</th>'
        '<th scope="col">Verdict</th></tr></thead><tbody>',
        *rows,
        "</tbody></table></div>",
    )


def _badge(verdict: Verdict) -> str:
    sign = f'<span aria-hidden="true">{SIGNS[verdict]}</span>'
    return f'<span class="verdict {verdict.replace(" ", "-")}">{sign} {verdict}</span>'


def _count(checks: Sequence[Check]) -> str:
    counts = Counter(check.verdict for check in checks)
    found = ", ".join(f"{counts[verdict]} {verdict}" for verdict in get_args(Verdict) if counts[verdict])
    return f"{len(checks)} check{'' if len(checks) == 1 else 's'}{': ' if found else ''}{found}"


def _check(check: Check) -> str:
    measured = f'<span class="note">{text(check.statistic)}; {text(check.test)}</span>'
    return f"<li>{_badge(check.verdict)} {text(check.text)}{measured}</li>"


@dataclass(frozen=True)
class _Results:
    """The finished runs on one task, as far as all runs of a learner go."""

    task: TaskSpec
    column: str
    curves: dict[Contender, Array]  # (runs, rounds); learners without a finished run are not there

    @classmethod
    def load(cls, store: Store, task: TaskSpec, done: Sequence[Cell]) -> _Results:
        frames = {cell: store.load(cell) for cell in done if cell.task == task}
        column = "regret" if all("regret" in frame.columns for frame in frames.values()) else "average_payoff"
        curves: dict[Contender, Array] = {}
        for learner in store.experiment.learners:
            found = [frame[column].to_numpy() for cell, frame in frames.items() if cell.learner == learner]
            if length := min(map(len, found), default=0):  # a trial without a payoff shortens its run
                curves[learner] = np.stack([run[:length] for run in found])
        return cls(task, column, curves)

    def final(self, learner: Contender) -> tuple[float, float, int]:
        """Mean, half-width and number of runs at the last round."""
        mean, half = mean_interval(self.curves[learner][:, -1])
        return float(mean), float(half), len(self.curves[learner])

    def best(self) -> Contender | None:
        sign = 1 if self.column == "regret" else -1
        return min(self.curves, key=lambda learner: sign * self.final(learner)[0], default=None)


def _experiment(page: Page, store: Store, out: Path) -> None:
    """Figures, final numbers, and where they come from."""
    spec, missing, failures = store.experiment, set(store.missing()), store.failures()
    done = [cell for cell in spec.cells() if cell not in missing]
    results = [_Results.load(store, task, done) for task in spec.tasks]
    size = f"{spec.rounds:,} rounds, {spec.seeds} run{'' if spec.seeds == 1 else 's'} per learner and task"
    content = [f"<p>{size}.</p>"]
    if missing:
        lost = f"{len(missing)} of {len(spec.cells())} runs are missing"
        content.append(f"<p><strong>{lost}</strong>, {len(failures)} of them because they failed.</p>")
    if done:
        keys = [(str(i), learner.title, Look.of(learner)) for i, learner in enumerate(spec.learners)]
        content.append(legend(keys, logarithmic=any(result.column == "regret" for result in results)))
        content.append(panels([_panel(page, spec.learners, result) for result in results if result.curves]))
        content += ["<h3>After the last round</h3>", _finals(spec.learners, results)]
    content += ["<h3>Where this comes from</h3>", _origin(store, out, done)]
    if failures:
        items = "".join(f"<li><code>{text(cell.key)}</code>: {text(why)}</li>" for cell, why in failures.items())
        content.append(f'<div class="failures"><h3>Failed runs</h3><ul>{items}</ul></div>')
    page.section(store.folder.name, f"Experiment {spec.name}", *content)


def _panel(page: Page, learners: Sequence[Contender], result: _Results) -> str:
    data = [
        trace
        for i, learner in enumerate(learners)
        if learner in result.curves
        for trace in band_and_mean(str(i), learner.title, Look.of(learner), result.curves[learner])
    ]
    axis = AXES[result.column]
    finals = "; ".join(f"{learner.title} {result.final(learner)[0]:.4g}" for learner in result.curves)
    label = f"{axis} over rounds, {result.task.name}. After the last round: {finals}"
    rounds = max(curves.shape[1] for curves in result.curves.values())
    layout: dict[str, Any] = {
        "xaxis": {"title": {"text": "round"}, "range": [0, rounds]},
        "yaxis": {"title": {"text": axis}},
    }
    if result.column == "regret":
        layout["yaxis"]["rangemode"] = "tozero"
    return page.figure(result.task.name, label, data, layout)


def _finals(learners: Sequence[Contender], results: Sequence[_Results]) -> str:
    head = ["learner", *(f"{text(result.task.name)}<br>{AXES[result.column]}" for result in results)]
    rows = []
    for learner in learners:
        row = [text(learner.title)]
        for result in results:
            if learner not in result.curves:
                row.append("no run")
                continue
            mean, half, runs = result.final(learner)
            best = ' class="best"' if learner == result.best() else ""
            row.append(f'<span{best}>{measured(mean, half, runs)}</span> <span class="note">n = {runs}</span>')
        rows.append(row)
    note = '<p class="note">Mean ± half-width of the 95% t-interval over n runs; the best mean of a column is bold.</p>'
    return note + table(head, rows, "Means after the last round")


def _origin(store: Store, out: Path, done: Sequence[Cell]) -> str:
    """Command, spec, timings, versions and commit."""
    spec, manifests = store.experiment, {cell: store.manifest(cell) for cell in done}
    parts = [f"<p>Command:</p><pre><code>{text(_command(store, out))}</code></pre>"]
    parts.append(details(f"Settings: {store.folder.name}/spec.toml", f"<pre><code>{text(to_toml(spec))}</code></pre>"))
    seconds = {
        learner: sum(entry["seconds"] for cell, entry in manifests.items() if cell.learner == learner)
        for learner in spec.learners
    }
    rows = [[text(learner.title), f"{total:,.1f}"] for learner, total in seconds.items()]
    rows.append(["all", f"{sum(seconds.values()):,.1f}"])
    timings = table(["learner", "seconds, all runs together"], rows, "Timings")
    parts.append(details(f"Timings: {sum(seconds.values()):,.1f} seconds of one core", timings))
    places = Counter(
        json.dumps({"python": entry["python"], **entry["versions"], "commit": entry["commit"] or "unknown"})
        for entry in manifests.values()
    )
    for place, runs in places.items():
        found = [[text(name), f"<code>{text(version)}</code>"] for name, version in json.loads(place).items()]
        versions = table(["package", "version"], found, "Versions", numbers=False)
        parts.append(details(f"Versions and commit of {runs} run{'' if runs == 1 else 's'}", versions))
    return "\n".join(parts)


def _command(store: Store, out: Path) -> str:
    """What to type to make these results again."""
    spec = store.experiment
    if spec.name in EXPERIMENTS:
        for quick, flag in ((False, ""), (True, " --quick")):
            if EXPERIMENTS[spec.name](quick).digest == spec.digest:
                return f"randomist reproduce {spec.name}{flag}"
    path = store.folder / "spec.toml"
    return f"randomist experiment {path.relative_to(out) if path.is_relative_to(out) else path}"


def _chains(page: Page, chains: Chains) -> None:
    """Figure 4: the first two coordinates of every chain, in the box."""
    rows: list[str] = []
    groups = (("Early", chains.early, chains.early_rounds), ("Late", chains.late, chains.late_rounds))
    for word, paths, rounds in groups:
        figures = [_chain(page, chains, path, done) for path, done in zip(paths, rounds, strict=True)]
        rows += [f"<h3>{word}: rounds {rounds[0]} to {rounds[-1]}</h3>", panels(figures, "small")]
    more = f" Of {len(chains.low)} coordinates, the first two are drawn." if len(chains.low) > 2 else ""
    page.section(
        "chains",
        "Chains of MCMC-RANDOMIST",
        "<p>The path of the Metropolis chain that chose the decision of a round, in the box of decisions: from the "
        "circle to the square, the first coordinate to the right and the second upwards. Distances are between these "
        f"ends, in units of the hyperpolicy's std.{more}</p>",
        *rows,
    )


def _chain(page: Page, chains: Chains, path: Array, done: int) -> str:
    first, second = Look("#0072B2", "-", "o"), Look("#D55E00", "-", "s")
    flat = path.shape[1] == 1  # one coordinate: against the step
    x, y = (np.arange(len(path), dtype=float), path[:, 0]) if flat else (path[:, 0], path[:, 1])
    at = kept(len(path))
    shared = {"type": "scatter", "hovertemplate": "%{x:.4~g}, %{y:.4~g}<extra></extra>"}
    data: list[dict[str, Any]] = [
        {**shared, "x": numbers(x[at]), "y": numbers(y[at]), "mode": "lines", "meta": first.meta}
        | {"line": {"width": 1.2}}
    ]
    for i, kind in ((0, first), (-1, second)):
        end = {"x": numbers(x[[i]]), "y": numbers(y[[i]]), "mode": "markers", "meta": kind.meta}
        data.append({**shared, **end, "marker": {"symbol": kind.symbol, "size": 8}, "cliponaxis": False})
    bounds = list(zip(chains.low.tolist(), chains.high.tolist(), strict=True))
    ranges = [[0, len(path) - 1], bounds[0]] if flat else bounds[:2]
    axes = [{"range": list(bound), "nticks": 4} for bound in ranges]
    distance = float(np.linalg.norm((path[-1] - path[0]) / chains.std))
    label = f"Chain of round {done}: {len(path) - 1} steps, ends {distance:.3g} std from its start"
    layout = {"xaxis": axes[0], "yaxis": axes[1], "small": True, "margin": {"l": 32, "r": 10, "t": 8, "b": 22}}
    return page.figure(f"Round {done}: {distance:.2g} std", label, data, layout)


def _grid(page: Page) -> None:
    """Figure 5, right: the number of points of OPTIMIST2's grid."""
    rounds = kept(GRID_ROUNDS, logarithmic=True) + 1
    keys, data, finals = [], [], []
    for kappa, colour, line, marker in ((2, "#D55E00", "-", "^"), (3, "#0072B2", "--", "o"), (4, "#009E73", ":", "D")):
        kind, name = Look(colour, line, marker), f"κ\u00a0=\u00a0{kappa}"
        points = [points_per_dimension(int(t), kappa) ** GRID_DIMENSION for t in rounds]
        keys.append((str(kappa), name, kind))
        finals.append(f"{points[-1]:,} for {name}")
        data.append(
            {"type": "scatter", "x": rounds.tolist(), "y": points, "name": name, "legendgroup": str(kappa)}
            | {"mode": "lines+markers", "marker": {"symbol": kind.symbol, "size": 7, "maxdisplayed": 7}}
            | {"line": kind.line(shape="hv"), "meta": kind.meta}
            | {"hovertemplate": "round %{x}<br>%{y:,} points"}
        )
    layout = {
        "xaxis": {"title": {"text": "round"}, "type": "log", "dtick": 1},
        "yaxis": {"title": {"text": "grid points"}, "type": "log", "exponentformat": "power"},
    }
    label = f"Grid points over rounds, both axes logarithmic. At round {GRID_ROUNDS}: {'; '.join(finals)}"
    page.section(
        "grid",
        "Grid points of OPTIMIST2",
        f"<p>OPTIMIST2 compares ⌈t<sup>1/κ</sup>⌉<sup>d</sup> points in round t; here d = {GRID_DIMENSION}. "
        f"At round {GRID_ROUNDS:,}: {'; '.join(finals)}.</p>",
        legend(keys, logarithmic=False),
        panels([page.figure(f"d = {GRID_DIMENSION}", label, data, layout)]),
    )
