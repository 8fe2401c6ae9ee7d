"""Tables for terminals, papers and spreadsheets: means with 95% intervals, the best of each column marked."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from rich.table import Table

from randomist.experiments.comparison import Comparison
from randomist.experiments.contenders import Contender


def comparison_text(comparisons: Sequence[Comparison], format_: str) -> str:
    """The same as Markdown or LaTeX (the best in bold), or as CSV (a row per task and learner, unrounded)."""
    contenders = list(comparisons[0].runs)
    if format_ == "csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("task", "learner", "measure", "mean", "half_width_95"))
        for comparison in comparisons:
            writer.writerows((comparison.title, c.title, comparison.measure, *comparison.final(c)) for c in contenders)
        return text.getvalue().rstrip("\n")
    bold, between = ("**{}**", " | ") if format_ == "markdown" else (r"$\mathbf{{{}}}$", " & ")
    plain, pm = ("{}", "±") if format_ == "markdown" else ("${}$", r"\pm")
    rows = [["learner", *(comparison.title for comparison in comparisons)]]
    for contender in contenders:
        cells = []
        for comparison in comparisons:
            cell = _cell(comparison, contender).replace("±", pm)
            cells.append((bold if contender is comparison.best() else plain).format(cell))
        rows.append([contender.title, *cells])
    if format_ == "markdown":
        rows.insert(1, ["---"] + ["---:"] * len(comparisons))
        return "\n".join(f"| {between.join(row)} |" for row in rows)
    names = [[_escaped(rows[0][0]), *map(_escaped, rows[0][1:])], *([_escaped(row[0]), *row[1:]] for row in rows[1:])]
    lines = [f"{between.join(row)} \\\\" for row in names]
    head = rf"\begin{{tabular}}{{l{'r' * len(comparisons)}}}"
    return "\n".join([head, r"\hline", lines[0], r"\hline", *lines[1:], r"\hline", r"\end{tabular}"])


def _cell(comparison: Comparison, contender: Contender) -> str:
    mean, half = comparison.final(contender)
    return f"{mean:,.1f} ± {half:,.1f}" if comparison.measure == "regret" else f"{mean:.4g} ± {half:.2g}"


def _escaped(text: str) -> str:
    """Plain text for LaTeX."""
    greek = {"σ": r"$\sigma$", "λ": r"$\lambda$", "κ": r"$\kappa$"}
    return "".join(greek.get(letter, f"\\{letter}" if letter in "&%$#_{}" else letter) for letter in text)


def comparison_table(comparisons: Sequence[Comparison], title: str) -> Table:
    """Learners in rows, tasks in columns; each cell is mean ± half-width at the last round."""
    table = Table(title=title, title_justify="left", title_style="bold", caption_justify="left")
    table.add_column("learner", no_wrap=True)
    for comparison in comparisons:
        table.add_column(comparison.title, justify="right")
    best = [comparison.best() for comparison in comparisons]
    for contender in comparisons[0].runs:
        cells = []
        for comparison, winner in zip(comparisons, best, strict=True):
            cell = _cell(comparison, contender)
            cells.append(f"[bold green]{cell} *[/]" if contender is winner else f"{cell}  ")
        table.add_row(contender.title, *cells)
    return table
