"""Films that can be read back, and those that cannot be made."""

from __future__ import annotations

import sys

import imageio.v3
import numpy as np
import pytest

import randomist as rd
from randomist.errors import ParameterError, TaskError
from randomist.policies.episodes import rollout


@pytest.mark.parametrize(
    ("task", "parameters"),
    [
        (lambda: rd.task("mountain-car", horizon=40), [0.3, 30.0]),
        (lambda: rd.task("cartpole", horizon=40), [0.0, 1.0, 9.0, 2.0]),
        (lambda: rd.tasks.gymnasium("CartPole-v1", horizon=20), np.arange(8.0)),
    ],
)
def test_a_gif_can_be_read_back(task, parameters, tmp_path):
    path = tmp_path / "film.gif"
    watched = rollout(task(), parameters, seed=1, render=path)
    unwatched = rollout(task(), parameters, seed=1)
    assert watched.payoff == unwatched.payoff
    np.testing.assert_array_equal(watched.observations, unwatched.observations)
    frames = imageio.v3.imread(path)
    assert 1 < len(frames) <= len(watched.observations)
    assert frames.shape[-1] == 3
    assert (frames[0] != frames[-1]).any()
    assert [p.name for p in tmp_path.iterdir()] == ["film.gif"]


def test_the_noise_does_not_see_the_camera(tmp_path):
    noisy = (rd.GaussianPolicy(rd.task("mountain-car").policy, 0.5), [0.3, 30.0])
    watched = rollout(rd.task("mountain-car", horizon=20), noisy, seed=1, render=tmp_path / "film.gif")
    np.testing.assert_array_equal(watched.actions, rollout(rd.task("mountain-car", horizon=20), noisy, seed=1).actions)


def test_films_that_cannot_be_made(tmp_path, monkeypatch):
    def refused(error, words, task="mountain-car", parameters=(0.1, 9.0), render="film.gif"):
        with pytest.raises(error, match=f"(?s){words}"):
            rollout(task, parameters, render=tmp_path / render)
        assert not list(tmp_path.iterdir())

    refused(ParameterError, r"\.gif or an \.mp4.*film\.avi", render="film.avi")
    refused(ParameterError, "folder.*make it", render="nowhere/film.gif")
    refused(TaskError, "lqg.*draws nothing.*rgb_array", task="lqg", parameters=-0.5)
    monkeypatch.setattr("randomist.policies.films.find_spec", lambda name: None if name == "imageio_ffmpeg" else True)
    refused(ParameterError, r"\.mp4 film needs imageio-ffmpeg: pip install imageio-ffmpeg", render="film.mp4")
    monkeypatch.setattr("randomist.policies.films.find_spec", lambda name: None)
    refused(ParameterError, r"\.gif film needs pillow.*randomist\[run\]")
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "pygame", None)
    refused(TaskError, r"pygame is not installed.*randomist\[render\]")
