"""Which of five recommenders is best? Ask the log of a shop that ran two others.

A shop shows three of its 20 items to each visitor. Visitors come in four segments with different tastes. They always
look at the first item, less often at the second and the third (position effect), and are half as likely to buy what
they were shown the last time (novelty effect). Who buys something is a payoff of 1, who does not of 0.

Two policies ran: the shop's bestseller list, and a nearly uniform one that explores. What the shop has is a table of
its visits. Five candidates are evaluated from that alone, without showing a single item to anybody; only one of them
ran. Because the shop is simulated, the truth is known and printed beside. Those that may be best are then run.

    python examples/recommender_shop.py          # writes out/shop.parquet and out/recommender-shop.png
    python examples/recommender_shop.py --visits 400000
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

import randomist as rd
from randomist.logs.figure import draw

ITEMS, SEGMENTS, SHOWN = 20, 4, 3
LOOKS = np.array([1.0, 0.6, 0.35])  # how likely a visitor looks at each position
TRUTH_VISITS, FOLDER = 400_000, Path("out")


@dataclass(frozen=True)
class Visits:
    """Who comes: a segment, and what each was shown the last time."""

    segment: np.ndarray  # (n,)
    seen: np.ndarray  # (n, ITEMS), true or false


class Shop:
    """What nobody knows: how likely a visitor of each segment is to buy an item that is new and looked at."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.appeal = rng.beta(1.2, 8.0, size=(SEGMENTS, ITEMS))
        self.margin = rng.random(ITEMS)
        self.popularity = self.appeal.mean(axis=0)
        self.surveyed = self.appeal * rng.uniform(0.6, 1.4, size=(SEGMENTS, ITEMS))  # what the shop believes

    def visits(self, count: int, rng: np.random.Generator) -> Visits:
        segment = rng.choice(SEGMENTS, size=count, p=[0.4, 0.3, 0.2, 0.1])
        rank = np.argsort(np.argsort(np.log(self.popularity) + rng.gumbel(size=(count, ITEMS)), axis=1), axis=1)
        return Visits(segment, rank >= ITEMS - SHOWN)

    def payoffs(self, visits: Visits, shown: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """1 if something is bought, position by position.  (n,)"""
        appeal = np.take_along_axis(self.appeal[visits.segment], shown, axis=1)  # (n, SHOWN)
        novelty = np.where(np.take_along_axis(visits.seen, shown, axis=1), 0.5, 1.0)
        bought = rng.random(shown.shape) < appeal * novelty * LOOKS
        return bought.any(axis=1).astype(float)

    def scores(self, policy: str, visits: Visits) -> np.ndarray:
        """What a policy thinks of each item for each visit.  (n, ITEMS)"""
        personal = 9.0 * self.surveyed[visits.segment]
        return {
            "bestsellers": np.tile(12.0 * self.popularity, (len(visits.segment), 1)),
            "exploring": np.tile(2.0 * self.popularity, (len(visits.segment), 1)),
            "personal": personal,
            "fresh": -1.5 * visits.seen,
            "personal-fresh": personal - 1.5 * visits.seen,
            "margins": np.tile(1.5 * self.margin, (len(visits.segment), 1)),
        }[policy]


def choose(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Three items, drawn one after the other with probabilities softmax(scores) (Plackett-Luce).  (n, SHOWN)"""
    return np.argsort(-(scores + rng.gumbel(size=scores.shape)), axis=1)[:, :SHOWN]


def log_likelihood(scores: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """The log-probability of showing just these, in this order.  (n,)"""
    left, total = np.exp(scores - scores.max(axis=1, keepdims=True)), np.zeros(len(scores))
    rows = np.arange(len(scores))
    for position in range(SHOWN):
        item = shown[:, position]
        total += np.log(left[rows, item] / left.sum(axis=1))
        left[rows, item] = 0.0
    return total


CANDIDATES = ("bestsellers", "personal", "fresh", "personal-fresh", "margins")
LOGGERS = {"bestsellers": 0.4, "exploring": 0.6}
SHOP = Shop(seed=3)


def visits_table(shop: Shop, count: int, seed: int) -> pl.DataFrame:
    """What the shop kept of its visits: who came, what was shown by whom, and whether something was bought."""
    rng = np.random.default_rng(seed)
    visits = shop.visits(count, rng)
    acted = rng.choice(list(LOGGERS), size=count, p=list(LOGGERS.values()))
    scores = {policy: shop.scores(policy, visits) for policy in LOGGERS}
    shown = choose(np.where((acted == "exploring")[:, None], scores["exploring"], scores["bestsellers"]), rng)
    seen = np.nonzero(visits.seen)[1].reshape(count, SHOWN)  # three each
    columns = {"visit": np.arange(count), "segment": visits.segment, "shown_by": acted}
    columns |= {f"seen{j}": seen[:, j] for j in range(SHOWN)} | {f"item{j}": shown[:, j] for j in range(SHOWN)}
    return pl.DataFrame(columns | {"bought": shop.payoffs(visits, shown, rng)})


def policy(name: str) -> Callable[[pl.DataFrame], np.ndarray]:
    """A recommender as a function of the table: with which probability it would have shown just these items.  (n,)"""

    def probability(frame: pl.DataFrame) -> np.ndarray:
        seen = np.zeros((frame.height, ITEMS), bool)
        np.put_along_axis(seen, frame.select(f"seen{j}" for j in range(SHOWN)).to_numpy(), True, axis=1)
        scores = SHOP.scores(name, Visits(frame["segment"].to_numpy(), seen))
        return np.exp(log_likelihood(scores, frame.select(f"item{j}" for j in range(SHOWN)).to_numpy()))

    return probability


bestsellers, exploring, personal = policy("bestsellers"), policy("exploring"), policy("personal")


def truths(shop: Shop, seed: int) -> dict[str, float]:
    """What each candidate earns when it is really run, which the log's owner cannot know."""
    found = {}
    for policy in CANDIDATES:
        rng = np.random.default_rng([seed, CANDIDATES.index(policy)])
        visits = shop.visits(TRUTH_VISITS, rng)
        found[policy] = float(shop.payoffs(visits, choose(shop.scores(policy, visits), rng), rng).mean())
    return found


def try_out(log: rd.Log, visits: int, seed: int) -> None:
    """Run those that may be best, beginning with what the log knows."""
    best = log.best()
    learner = rd.Realist(best.space(), prior=best.prior, seed=seed)
    study = rd.create_study("shop", learner, storage="memory://shop")

    rng = np.random.default_rng(seed)
    for _ in range(visits):
        trial = study.ask()
        visit = SHOP.visits(1, rng)
        shown = choose(SHOP.scores(best.names[trial.decision], visit), rng)
        study.tell(trial, float(SHOP.payoffs(visit, shown, rng)[0]))
    shares = ", ".join(f"{name} {plays}" for name, plays in zip(best.names, study.estimates().plays, strict=True))
    print(f"{visits:,} visits later ({shares}): {best.names[study.recommend()]}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Choose among five recommenders from a simulated log.")
    parser.add_argument("--visits", type=int, default=40_000, help="rows of the log")
    visits = parser.parse_args().visits
    FOLDER.mkdir(exist_ok=True)
    visits_table(SHOP, visits, seed=0).write_parquet(FOLDER / "shop.parquet")

    log = rd.Log.from_table(
        FOLDER / "shop.parquet",
        payoff="bought",
        logger="shown_by",
        id="visit",
        policies={name: policy(name) for name in (*CANDIDATES, "exploring")},
        candidates=CANDIDATES,
    )
    found, truth = log.evaluate(compare="leader"), truths(SHOP, seed=1)
    print(f"{len(log):,} visits, shown by {' and '.join(f'{name} ({rows:,})' for name, rows in log.loggers.items())}")
    print("candidate       estimate  95% interval      effective rows  truth")
    for k, name in enumerate(log.candidates):
        interval, effective = f"{found.low[k]:.4f} to {found.high[k]:.4f}", found.effective_samples[k]
        print(f"{name:14} {found.self_normalised[k]:9.4f}  {interval}  {effective:14,.0f}  {truth[name]:.4f}")
    print(found.verdict())

    draw(found, FOLDER / "recommender-shop.png", truth)
    print(f"figure: {FOLDER / 'recommender-shop.png'}")
    try_out(log, 1_000, seed=0)


if __name__ == "__main__":
    main()
