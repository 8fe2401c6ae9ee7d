"""Photograph the dashboard for docs/studies/production.md: `python docs/screens.py`.

It needs playwright and Debian's chromium. `python docs/screens.py FOLDER` takes every page as a whole, in both themes,
1280 and 390 pixels wide.
"""

from __future__ import annotations

import math
import shutil
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import randomist as rd
from randomist.study.service import Tokens, create_app
from randomist.study.service.server import make_server

FOLDER = Path(__file__).parent / "_static" / "dashboard"
PICTURES = {  # a page, its width, height and theme
    "studies": ("", 1280, 420, "light"),
    "policies": ("shop-front", 1280, 1120, "light"),
    "parameters": ("servo-tuning", 1280, 1560, "dark"),
    "phone": ("shop-front", 390, 1150, "light"),
}
SERVO = rd.Parameters(
    kp=rd.Real(0.1, 100, log=True),
    ki=rd.Real(0.001, 1, log=True),
    taps=rd.Integer(1, 12),
    filter=rd.Choice("none", "median", "kalman"),
)
ACTIONS = {  # how often each policy shows each of four items, and what these pay
    "as it is": [0.25, 0.25, 0.25, 0.25],
    "new ranking": [0.1, 0.2, 0.6, 0.1],
    "new ranking and prices": [0.05, 0.1, 0.75, 0.1],
    "editor's choice": [0.4, 0.4, 0.1, 0.1],
}
PAYS = [0.1, 0.15, 0.42, 0.2]


def shop(url: str, rng: np.random.Generator) -> None:
    """Policies that act elsewhere, known by their likelihoods."""
    names = list(ACTIONS)
    learner = rd.Randomist(rd.Finite.likelihoods(len(names), names=names), payoff_range=(0, 1), seed=0)
    study = rd.create_study("shop-front", learner, storage=url)
    for i in range(1500):
        trial = study.ask(worker=f"web-{i % 3}")
        item = rng.choice(4, p=ACTIONS[names[trial.decision]])
        done = {name: math.log(chances[item]) for name, chances in ACTIONS.items()}
        study.tell(trial, float(rng.random() < PAYS[item]), log_likelihoods=done, worker=f"web-{i % 3}")
    study.ask(3, worker="web-1")


def servo(url: str, rng: np.random.Generator) -> None:
    """Parameters with names, on log scales too, and failures."""
    study = rd.create_study("servo-tuning", rd.Auto(SERVO, seed=0), storage=url)
    for i in range(140):
        trial = study.ask(worker=f"rig-{i % 2}")
        p = trial.parameters
        if p["kp"] > 60:
            study.fail(trial, "RuntimeError: overcurrent on axis 2")
            continue
        detuned = math.log10(p["kp"] / 4) ** 2 + 0.5 * math.log10(p["ki"] / 0.05) ** 2 + 0.02 * (p["taps"] - 5) ** 2
        gain = {"none": 0.0, "median": 0.3, "kalman": 0.5}[p["filter"]]
        study.tell(trial, gain - detuned + 0.15 * rng.standard_normal(), worker=f"rig-{i % 2}")


def valley(url: str, rng: np.random.Generator) -> None:
    """A box that importance weights share."""
    box = rd.Box(rd.Gaussian(std=[0.15, 3.0]), low=[-1, 0], high=[1, 20])
    study = rd.create_study("valley", rd.MCMCRandomist(box, seed=0, payoff_range=(0, 1)), storage=url, worker="sim")
    for _ in range(120):
        trial = study.ask()
        x, y = trial.mediator
        hill = math.exp(-(((x - 0.4) / 0.4) ** 2) - ((y - 12) / 6) ** 2)
        study.tell(trial, float(np.clip(hill + 0.03 * rng.standard_normal(), 0, 1)))


def main(folder: Path = FOLDER, whole: bool = False) -> None:
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as driver:
        url, rng = f"sqlite:///{place}/study.db", np.random.default_rng(1)
        for make in (valley, servo, shop):
            make(url, rng)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = make_server(create_app(url, Tokens({}, public_read=True)), port=port, quiet=True)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.05)
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (study, width, height, theme) in (_every() if whole else PICTURES).items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
            page.goto(f"http://127.0.0.1:{port}/#{study}")
            page.wait_for_selector("#trials tbody tr" if study else "#studies > li")
            page.wait_for_selector("#status.live")
            page.screenshot(path=folder / f"{name}.png", full_page=whole)
            page.close()
        browser.close()
        server.handle_exit(15, None)
        thread.join(20)


def _every() -> dict[str, Any]:
    pages = ("", "shop-front", "servo-tuning", "valley")
    looks = [(width, theme) for width in (1280, 390) for theme in ("light", "dark")]
    return {
        f"{page or 'studies'}-{width}-{theme}": (page, width, 900, theme) for page in pages for width, theme in looks
    }


if __name__ == "__main__":
    main(*([Path(sys.argv[1]), True] if len(sys.argv) > 1 else []))
