"""Tables for terminals: means with 95% intervals, the best of each column marked."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from randomist.experiments.comparison import Comparison


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
            mean, half = comparison.final(contender)
            cell = f"{mean:,.1f} ± {half:,.1f}" if comparison.measure == "regret" else f"{mean:.4g} ± {half:.2g}"
            cells.append(f"[bold green]{cell} *[/]" if contender is winner else f"{cell}  ")
        table.add_row(contender.title, *cells)
    return table
