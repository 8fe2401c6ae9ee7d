"""Single runs: run, compare, play, list, demo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from randomist._json import for_json
from randomist.cli.app import Jobs, app, out, progress
from randomist.errors import ParameterError
from randomist.experiments.contenders import BOX_CONTENDERS, PAPER_CONTENDERS, Contender, parse_settings
from randomist.learners.registry import TABLE

if TYPE_CHECKING:  # what takes its time to import is imported by the commands that need it
    from randomist._types import Array
    from randomist.simulation import Run
    from randomist.tasks import Task

# Any further `--key value` is a setting of the task: `randomist run illustrative --sigma 2 --lambda 0.1`.
OPEN = {"allow_extra_args": True, "ignore_unknown_options": True}
Rounds = Annotated[int, typer.Option(min=1, help="Rounds of each run.")]
Seeds = Annotated[int, typer.Option(min=1, help="Runs, with seeds 0, 1, ...")]
TaskId = Annotated[
    str, typer.Argument(help="Task id (see `randomist list`), or module:Class; further `--key value` are its settings.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print numbers as JSON instead of a table.")]


@app.command(context_settings=OPEN)
def run(
    context: typer.Context,
    task: TaskId,
    learner: Annotated[
        str | None,
        typer.Option(
            help="A learner (see `randomist list`), or module:Class. Default: realist on a finite set, auto in a box."
        ),
    ] = None,
    rounds: Rounds = 1000,
    seeds: Seeds = 1,
    jobs: Jobs = 1,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A setting of the learner, key=value.")] = None,
    until: Annotated[
        str | None, typer.Option(help='"sure": end as soon as one decision is left that may be best; of finite sets.')
    ] = None,
    level: Annotated[float | None, typer.Option(help="With which probability --until sure is right; 0.95.")] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write the policy recommended by the best run (JSON, for `randomist play`).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run one learner on a task, once per seed, and summarise.

    Example: randomist run illustrative --sigma 2 --lambda 0.1 --learner randomist --rounds 1000 --seeds 20

    Example: randomist run gym:Pendulum-v1 --low -2 --high 2 --std 0.3 --rounds 200 --save pendulum.json
    """
    import numpy as np

    from randomist.policies import save_policy
    from randomist.simulation.loop import default_learner
    from randomist.spaces import Finite
    from randomist.tasks import ControlTask

    problem = _task(task, context.args)
    if save is not None and not isinstance(problem, ControlTask):
        raise ParameterError(f"--save writes a policy; the mediators of {task!r} are not the parameters of one")
    learner = learner or default_learner(problem)
    contender = Contender.parse(learner)
    chosen = contender.settings | parse_settings(settings or [])
    ending = {} if until is None else {"until": until} | ({} if level is None else {"level": level})
    calls = [(problem, contender.name, rounds, seed, chosen | ending) for seed in range(seeds)]
    runs, interrupted = _runs(calls, jobs)
    if not runs:
        raise KeyboardInterrupt
    final = np.array([one.average_payoff[-1] if len(one.payoffs) else np.nan for one in runs])
    summary: dict[str, Any] = {"task": task, "learner": learner, "rounds": rounds, "seeds": seeds}
    summary["average_payoff"] = _interval(final)
    if runs[0].regret is not None:
        summary["regret"] = _interval(np.array([one.regret[-1] for one in runs if one.regret is not None]))
    summary["recommendations"] = [for_json(one.recommendation) for one in runs]
    if until is not None:
        summary["rounds_played"] = [len(one.payoffs) for one in runs]
        summary["surviving"] = [one.surviving for one in runs]
    summary["clipped"] = sum(one.clipped for one in runs)
    summary["failed"] = sum(len(one.failures) for one in runs)
    if save is not None and isinstance(problem, ControlTask):
        if not np.isfinite(final).any():
            raise ParameterError(
                f"no trial had a payoff, so there is no policy to save: {next(iter(runs[0].failures.values()))}"
            )
        best = runs[int(np.nanargmax(final))].recommendation
        if isinstance(problem.space, Finite) and problem.space.points is not None:
            best = problem.space.points[best]  # what is played is where the decision lies
        save.parent.mkdir(parents=True, exist_ok=True)
        save_policy(
            save,
            problem.policy,
            np.ravel(best),
            task=task,
            settings=parse_settings(_pairs(context.args)),
        )
        summary["saved"] = str(save)
    if as_json:
        print(json.dumps(summary))
        return
    out.print(f"[bold]{Contender(contender.name, chosen).title}[/] on {task}: {rounds} rounds, {len(runs)} run(s)")
    for name in ("regret", "average_payoff"):
        if name in summary:
            mean, half = summary[name]["mean"], summary[name]["half_width_95"]
            interval = f" ± {half:.4g} (95%)" if len(runs) > 1 else ""
            out.print(f"  {name.replace('_', ' '):15s} {mean:.6g}{interval}")
    out.print(f"  {'recommended':15s} {_shorten(summary['recommendations'])}")
    if until is not None:
        sure = sum(len(left) == 1 for left in summary["surviving"])
        out.print(f"  {'sure':15s} {sure} of {seeds}, after {_shorten(summary['rounds_played'])} rounds")
    if save is not None:
        out.print(f"  {'saved':15s} {save}")
    if summary["clipped"]:
        out.print(f"  {'clipped':15s} {summary['clipped']} payoffs were outside the range {problem.payoff_range}")
    if summary["failed"]:
        first = next(reason for one in runs for reason in one.failures.values())
        out.print(f"  [yellow]{'failed':15s} {summary['failed']} trials had no payoff; the first: {first}[/]")
    if interrupted:
        out.print(f"  [yellow]{'interrupted':15s} {runs[-1].notes[-1] if runs[-1].notes else 'between runs'}[/]")


@app.command(context_settings=OPEN)
def compare(
    context: typer.Context,
    task: TaskId,
    learner: Annotated[
        list[str] | None,
        typer.Option(
            help="A learner, repeatable: `optimist`, `randomist:perturbation_scale=8.1`. Default: the paper's."
        ),
    ] = None,
    rounds: Rounds = 1000,
    seeds: Seeds = 10,
    jobs: Jobs = 1,
    figure: Annotated[Path, typer.Option(help="Where the figure goes; the ending chooses the format.")] = Path(
        "out/compare.png"
    ),
    as_json: AsJson = False,
) -> None:
    """Run several learners on a task: a table with 95% intervals, and a figure.

    Example: randomist compare illustrative --sigma 0.1 --lambda 2 --learner ucb1 --learner optimist
    """
    from randomist.experiments.comparison import compare as run_comparison
    from randomist.experiments.figures import Panel, curves_figure
    from randomist.experiments.tables import comparison_table
    from randomist.spaces import Box

    if figure.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ParameterError(f"--figure must end in .png, .pdf or .svg, got {str(figure)!r}")
    problem = _task(task, context.args)
    usual = BOX_CONTENDERS if isinstance(problem.space, Box) else PAPER_CONTENDERS
    contenders = [Contender.parse(text) for text in learner] if learner else list(usual)
    with progress(len(contenders) * seeds, "runs") as advance:
        comparisons = run_comparison(
            [(_title(task, context.args), problem)],
            contenders,
            rounds=rounds,
            seeds=seeds,
            jobs=jobs,
            progress=lambda _: advance(),
        )
    curves_figure([Panel.of_comparison(comparisons[0])], [figure], f"{seeds} runs, mean and 95% t-interval")
    measure = comparisons[0].measure
    if as_json:
        finals = {
            c.title: dict(zip(("mean", "half_width_95"), comparisons[0].final(c), strict=True)) for c in contenders
        }
        print(json.dumps({"task": task, "rounds": rounds, "seeds": seeds, "measure": measure, "learners": finals}))
        return
    out.print(comparison_table(comparisons, f"{measure} after {rounds} rounds, {seeds} runs, 95% intervals (* best)"))
    out.print(f"figure: {figure}")


@app.command()
def play(
    saved: Annotated[Path, typer.Argument(metavar="RUN", help="A policy that `randomist run --save` wrote.")],
    film: Annotated[Path | None, typer.Option("--out", help="Where the film goes: .gif, or .mp4.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the episode.")] = 0,
) -> None:
    """Play one episode of a saved policy, and film it.

    Example: randomist play car.json --out car.gif
    """
    from randomist.policies import load_policy
    from randomist.policies.episodes import rollout
    from randomist.tasks import task as find_task

    policy = load_policy(saved)
    if policy.task is None:
        raise ParameterError(f"{saved} does not say which task its policy is for; save it with `randomist run --save`")
    episode = rollout(find_task(policy.task, **policy.settings), policy, seed=seed, render=film)
    out.print(f"{policy.task}: payoff {episode.payoff:.6g} in {len(episode.rewards)} steps")
    if film is not None:
        out.print(f"film: {film}")


@app.command(name="list")
def list_all() -> None:
    """Tasks and learners by name."""
    from rich.table import Table

    from randomist.tasks import GymnasiumTask
    from randomist.tasks.base import registered

    def learners(kind: str) -> dict[str, Any]:
        return {name: entry.load() for name, entry in TABLE.items() if entry.kind == kind}

    grid = Table.grid(padding=(0, 2))
    for title, entries in (
        ("tasks", registered() | {"gym:<id>": GymnasiumTask}),
        ("learners of a finite set", learners("finite")),
        ("learners in a box", learners("box")),
    ):
        grid.add_row(f"[bold]{title}[/]")
        for name, thing in entries.items():
            grid.add_row(f"  {name}", (thing.__doc__ or "").strip().splitlines()[0].replace("[", "\\["))
    out.print(grid)
    out.print("Your own are named by where they are defined: module:Class.")


@app.command()
def demo(
    jobs: Jobs = 2,
    rounds: Rounds = 2000,
    seeds: Seeds = 8,
    folder: Annotated[Path, typer.Option("--out", help="Folder of the figure.")] = Path("out/demo"),
) -> None:
    """All learners on the paper's four illustrative problems: a table of regret and a 2×2 figure."""
    from randomist.experiments import demo as demonstration
    from randomist.experiments.tables import comparison_table

    total = len(demonstration.problems()) * len(demonstration.CONTENDERS) * seeds
    with progress(total, "runs") as advance:
        comparisons, paths = demonstration.demo(
            folder, rounds=rounds, seeds=seeds, jobs=jobs, progress=lambda _: advance()
        )
    out.print(
        comparison_table(comparisons, f"cumulative regret after {rounds} rounds, {seeds} runs, 95% intervals (* best)")
    )
    out.print(
        "Left to right, decisions tell less about each other: at σ = λ = 2 every sample informs every policy, at\n"
        "σ = λ = 0.1 hardly any does. Sharing learners gain on the left; bandits are unmoved on the right.\n"
        f"figure: {paths[0]} and {paths[1]}"
    )


def _runs(calls: list[tuple[Any, ...]], jobs: int) -> tuple[list[Run], bool]:
    """The runs, and whether Ctrl-C ended them: then those so far, the last one as far as it came.

    In this process the bar counts rounds, so that one long run is seen to move.
    """
    from randomist.simulation import Run, run_all

    rounds, runs = calls[0][2], list[Run]()
    with progress(len(calls) * (rounds if jobs == 1 else 1), "rounds" if jobs == 1 else "runs") as advance:
        if jobs == 1:
            calls = [(*call[:4], call[4] | {"progress": lambda _: advance()}) for call in calls]
        try:
            for one in run_all(calls, jobs=jobs):
                runs.append(one)
                advance(rounds - len(one.payoffs) - len(one.failures) if jobs == 1 else 1)
        except KeyboardInterrupt as interrupt:
            partial = getattr(interrupt, "run", None)
            return [*runs, *([] if partial is None else [partial])], True
    return runs, False


def _pairs(arguments: list[str]) -> list[str]:
    """`["--sigma", "2", "--lambda=0.1"]` as `["sigma=2", "lambda=0.1"]`."""
    pairs, rest = [], iter(arguments)
    for word in rest:
        if not word.startswith("--"):
            raise ParameterError(f"unexpected argument {word!r}; settings of the task are written --key value")
        value = "" if "=" in word else "=" + (following if (following := next(rest, None)) is not None else "")
        if value == "=":
            raise ParameterError(f"the setting {word} has no value; write {word} VALUE")
        pairs.append(word[2:] + value)
    return pairs


def _task(id_: str, arguments: list[str]) -> Task:
    from randomist.tasks import task as find_task

    return find_task(id_, **parse_settings(_pairs(arguments)))


def _title(id_: str, arguments: list[str]) -> str:
    return " ".join([id_, *_pairs(arguments)])


def _interval(samples: Array) -> dict[str, float]:
    from randomist.experiments.comparison import mean_interval

    mean, half = mean_interval(samples)
    return {"mean": float(mean), "half_width_95": float(half)}


def _shorten(values: list[Any], most: int = 8) -> str:
    words = [f"[{', '.join(f'{x:.4g}' for x in v)}]" if isinstance(v, list) else str(v) for v in values]
    if len(set(words)) == 1:
        return words[0].replace("[", "\\[")
    text = ", ".join(words[:most]) + (f", ... ({len(words)} runs)" if len(words) > most else "")
    return text.replace("[", "\\[")
