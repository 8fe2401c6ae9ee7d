"""`python -m benchmarks.peers`: every method on every task, one table, one figure. Finished runs are not done again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.peers import figure, table
from benchmarks.peers.choices import available, chosen, parser, settings_for
from benchmarks.peers.methods import METHODS
from benchmarks.peers.results import Job, Result, run_all


def main(given: list[str] | None = None) -> None:
    arguments_parser = parser("The methods one would otherwise use, on the same tasks.", seeds=10)
    arguments_parser.add_argument("--out", type=Path, default=Path("out/peers"))
    arguments = arguments_parser.parse_args(given)
    problems, methods = available(arguments)
    tuned = chosen()
    budgets = {problem.id: min(arguments.episodes or problem.episodes, problem.episodes) for problem in problems}
    jobs, used = [], dict[str, dict[str, dict[str, Any]]]()
    for problem in problems:
        for method in methods:
            settings, was_tuned = settings_for(problem, method, tuned)
            if not was_tuned:
                print(f"{method.id} is not tuned on {problem.id}: {settings}", flush=True)
            used.setdefault(method.title, {})[problem.title] = settings
            seeds = range(arguments.seeds)
            episodes = min(budgets[problem.id], method.most or budgets[problem.id])
            jobs += [Job(problem.id, method.id, settings, episodes, seed) for seed in seeds]
    if not jobs:
        raise SystemExit("nothing to run")
    marks = table.columns(budgets.values())
    results = run_all(jobs, arguments.out, arguments.jobs)
    rows, curves, seconds = [], dict[str, dict[str, list[Result]]](), 0.0
    for problem in problems:
        for method in methods:
            runs = [next(results) for _ in range(arguments.seeds)]
            rows.append(table.summarise(problem.title, method.title, runs, marks))
            curves.setdefault(problem.title, {})[method.title] = runs
            seconds += sum(run.seconds for run in runs)
            print(f"{problem.id} {method.id}: {sum(run.seconds for run in runs):.1f} s", flush=True)
    print(f"\n{arguments.seeds} seeds, {seconds:.0f} s of search\n")
    decimals = {problem.title: problem.decimals for problem in problems}
    print(table.markdown(rows, marks, decimals))
    if METHODS["auto"] in methods and len(methods) > 1:
        print("\nAuto's lead over the best of the others, paired by seed:\n")
        leads = table.leads(curves, METHODS["auto"].title, marks)
        print(table.lead_markdown(leads, marks, decimals))
        print(
            f"\nAt 100 and 500 episodes, or all that a task has; paired t-tests, Holm:\n\n{table.significance(leads)}"
        )
    print(f"\n{table.settings_markdown(used)}")
    figure.draw(curves, arguments.out / "peers.png")
    print(f"\nfigure: {arguments.out / 'peers.png'}")


if __name__ == "__main__":
    main()
