"""One learner, and what it can be run on: run, play, list."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from randomist._json import for_json
from randomist.cli.app import Jobs, app, out, progress
from randomist.cli.options import OPEN, AsJson, Rounds, Seeds, TaskId, settings_of, task_of
from randomist.errors import ParameterError
from randomist.experiments.contenders import Contender, parse_settings
from randomist.learners.registry import TABLE

if TYPE_CHECKING:  # what takes its time to import is imported by the commands that need it
    from randomist._types import Array
    from randomist.simulation import Run


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

    problem = task_of(task, context)
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
        save_policy(save, problem.policy, np.ravel(best), task=task, settings=settings_of(context.args))
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


@app.command()
def play(
    saved: Annotated[Path, typer.Argument(metavar="RUN", help="A policy that `randomist run --save` wrote.")],
    film: Annotated[Path | None, typer.Option("--out", help="Where the film goes: .gif, or .mp4.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the episode.")] = 0,
) -> None:
    """Play one episode of a saved policy, and film it.

    Example: randomist play car.json --out car.gif
    """
    from randomist._lookup import reading
    from randomist.policies import load_policy
    from randomist.policies.episodes import rollout
    from randomist.tasks import task as find_task

    policy = load_policy(saved)
    if policy.task is None:
        raise ParameterError(f"{saved} does not say which task its policy is for; save it with `randomist run --save`")
    with reading():  # the file of a policy names its task, and imports nothing
        task = find_task(policy.task, **policy.settings)
    episode = rollout(task, policy, seed=seed, render=film)
    out.print(f"{policy.task}: payoff {episode.payoff:.6g} in {len(episode.rewards)} steps")
    if film is not None:
        out.print(f"film: {film}")


@app.command(name="list")
def list_all() -> None:
    """Tasks and learners by name."""
    from rich.table import Table

    from randomist.tasks import GymnasiumTask
    from randomist.tasks.base import named, task_ids

    def learners(kind: str) -> dict[str, Any]:
        return {name: entry.load() for name, entry in TABLE.items() if entry.kind == kind}

    grid = Table.grid(padding=(0, 2))
    for title, entries in (
        ("tasks", {id: named(id) for id in task_ids()} | {"gym:<id>": GymnasiumTask}),
        ("learners of a finite set", learners("finite")),
        ("learners in a box", learners("box")),
    ):
        grid.add_row(f"[bold]{title}[/]")
        for name, thing in entries.items():
            grid.add_row(f"  {name}", (thing.__doc__ or "").strip().splitlines()[0].replace("[", "\\["))
    out.print(grid)
    out.print("Your own are named by where they are defined: module:Class.")


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
