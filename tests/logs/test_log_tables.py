"""Tables as they are: every way to give a table and a policy is the same log; what is wrong is named with its rows."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

import randomist as rd
from randomist import errors

ITEMS = ["cap", "hat", "tie"]


def softmax(scores):
    weight = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weight / weight.sum(axis=1, keepdims=True)


SLOPES = {
    "logger": np.array([[0.3, -0.2, 0.1], [0.0, 0.4, -0.3]]),
    "new": np.array([[-0.8, 0.2, 0.6], [0.5, -0.1, 0.3]]),
}
SLOPES["close"] = SLOPES["new"] + np.array([[0.1, 0.0, 0.0], [0.0, 0.0, 0.05]])


def chances(name, features):
    return softmax(np.asarray(features) @ SLOPES[name])


def raw(rows=400, seed=0):
    """What a shop has: features, the item shown, its propensity, and whether it was bought."""
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1.0, 1.0, size=(rows, 2))
    drawn = chances("logger", features)
    item = (drawn.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1)
    reward = rng.random(rows) < 0.2 + 0.2 * item * (features[:, 0] > 0)
    return pl.DataFrame(
        {
            "age": features[:, 0],
            "income": features[:, 1],
            "item": np.array(ITEMS)[item],
            "pscore": drawn[np.arange(rows), item],
            "reward": reward.astype(float),
            "country": np.where(np.arange(rows) % 2, "at", "ch"),
        }
    )


COLUMNS = {"payoff": "reward", "action": "item", "propensity": "pscore", "context": ["age", "income"]}


def new(frame):
    return chances("new", np.column_stack([np.asarray(frame["age"]), np.asarray(frame["income"])]))


def expected(table):
    """The same log, made by hand."""
    features = table.select("age", "income").to_numpy()
    item = np.array([ITEMS.index(name) for name in table["item"]])
    likelihood = np.log(chances("new", features)[np.arange(len(item)), item])
    return rd.Log.from_arrays(table["reward"], {"new": likelihood}, log_propensities=np.log(table["pscore"]))


def assert_same(log, other):
    assert log.candidates == other.candidates
    for field in ("mis", "low", "high", "self_normalised"):
        np.testing.assert_allclose(
            getattr(log.evaluate(), field), getattr(other.evaluate(), field), rtol=1e-9, err_msg=field
        )


def test_a_function_may_give_the_probability_of_what_was_done():
    table = raw()

    def taken(frame):
        item = np.array([ITEMS.index(name) for name in frame["item"]])
        return new(frame)[np.arange(len(item)), item]

    asked = {"payoff": "reward", "propensity": "pscore"}
    assert_same(rd.Log.from_table(table, policies={"new": taken}, **asked), expected(table))
    assert_same(rd.Log.from_table(table, policies={"new": taken}, action="item", **asked), expected(table))
    with pytest.raises(errors.LogError, match=r"in \[0, 1\], and has 1\.5 in 1 rows \(3\)"):
        rd.Log.from_table(table, policies={"new": lambda f: np.where(np.arange(f.height) == 3, 1.5, 0.5)}, **asked)
    never = rd.Log.from_table(table, policies={"new": lambda frame: np.zeros(frame.height)}, **asked)
    assert never.evaluate().effective_samples[0] == 0


class Model:
    """What a fitted classifier has; its classes are in another order."""

    classes_ = np.array(["tie", "cap", "hat"])

    def predict_proba(self, inputs):
        assert isinstance(inputs, np.ndarray)
        return chances("new", inputs)[:, [2, 0, 1]]


def test_a_policy_that_does_the_same_in_every_row():
    fixed = {"tie": 0.5, "cap": np.float64(0.3), "hat": 0.2}
    by_name = rd.Log.from_table(raw(), payoff="reward", action="item", propensity="pscore", policies={"new": fixed})
    array = [fixed[item] for item in ITEMS]
    other = rd.Log.from_table(raw(), payoff="reward", action="item", propensity="pscore", policies={"new": array})
    assert_same(by_name, other)
    given = {"new": fixed | {"tie": 0.6}}
    with pytest.raises(errors.LogError, match="do not sum to 1"):
        rd.Log.from_table(raw(), payoff="reward", action="item", propensity="pscore", policies=given)


@pytest.mark.parametrize(
    "policy",
    [
        new,
        Model(),
        ["p_cap", "p_hat", "p_tie"],
        {"tie": "p_tie", "cap": "p_cap", "hat": "p_hat"},
        "log_likelihood:given",
        "array",
    ],
)
def test_every_kind_of_policy_is_the_same_log(policy):
    table = raw()
    probabilities = new(table)
    item = np.array([ITEMS.index(name) for name in table["item"]])
    more = {f"p_{name}": probabilities[:, k] for k, name in enumerate(ITEMS)}
    more["log_likelihood:given"] = np.log(probabilities[np.arange(len(item)), item])
    policy = probabilities if isinstance(policy, str) and policy == "array" else policy
    log = rd.Log.from_table(table.with_columns(**more), policies={"new": policy}, candidates=["new"], **COLUMNS)
    assert_same(log, expected(table))


def test_certain_policies_and_fixed_ones():
    table = raw().with_columns(choice=pl.when(pl.col("age") > 0).then(pl.lit("tie")).otherwise(pl.lit("hat")))
    log = rd.Log.from_table(table, policies={"rule": "choice", "even": [1 / 3, 1 / 3, 1 / 3]}, **COLUMNS)
    arrays = log.arrays()
    agrees = (table["choice"] == table["item"]).to_numpy()
    np.testing.assert_array_equal(arrays.log_likelihoods[:, 0], np.where(agrees, 0.0, -np.inf))
    np.testing.assert_allclose(arrays.log_likelihoods[:, 1], math.log(1 / 3))


def test_a_scikit_learn_classifier():
    linear = pytest.importorskip("sklearn.linear_model")
    table = raw()
    inputs = table.select("age", "income").to_numpy()
    model = linear.LogisticRegression().fit(inputs, table["item"].to_numpy())
    log = rd.Log.from_table(table, policies={"model": model}, **COLUMNS)
    item = np.array([ITEMS.index(name) for name in table["item"]])
    by_hand = np.log(model.predict_proba(inputs)[np.arange(len(item)), item])
    np.testing.assert_allclose(log.arrays().log_likelihoods[:, 0], by_hand)
    tree = pytest.importorskip("sklearn.svm").LinearSVC().fit(inputs, table["item"].to_numpy())
    chosen = rd.Log.from_table(table, policies={"sure": tree}, **COLUMNS).arrays().log_likelihoods[:, 0]
    np.testing.assert_array_equal(chosen == 0, tree.predict(inputs) == table["item"].to_numpy())


@pytest.mark.parametrize("kind", ["csv", "parquet", "folder", "mapping", "lazy", "pandas", "pyarrow", "duckdb"])
def test_every_kind_of_table_is_the_same_log(tmp_path, kind):
    table = raw()
    source = table
    if kind == "csv":
        table.write_csv(tmp_path / "log.csv")
        source = tmp_path / "log.csv"
    elif kind == "parquet":
        table.write_parquet(tmp_path / "log.parquet")
        source = str(tmp_path / "log.parquet")
    elif kind == "folder":
        table[:150].write_parquet(tmp_path / "a.parquet")
        table[150:].write_parquet(tmp_path / "b.parquet")
        source = tmp_path
    elif kind == "mapping":
        source = {name: table[name].to_list() for name in table.columns}
    elif kind == "lazy":
        source = table.lazy()
    elif kind == "pandas":
        source = pytest.importorskip("pandas").DataFrame({name: table[name].to_list() for name in table.columns})
    elif kind == "pyarrow":
        source = pytest.importorskip("pyarrow").table({name: table[name].to_list() for name in table.columns})
    elif kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        table.write_parquet(tmp_path / "log.parquet")
        source = duckdb.connect().from_parquet(str(tmp_path / "log.parquet"))
    log = rd.Log.from_table(source, policies={"new": new}, **COLUMNS)
    assert_same(log, expected(table))
    assert list(log.evaluate(by="country").segments) == ["at", "ch"]


def test_functions_see_the_frame_they_were_given():
    pandas = pytest.importorskip("pandas")
    table = raw()
    seen = []

    def policy(frame):
        seen.append(frame)
        return new(frame)

    rd.Log.from_table(
        pandas.DataFrame({name: table[name].to_list() for name in table.columns}), policies={"new": policy}, **COLUMNS
    )
    assert isinstance(seen[0], pandas.DataFrame)
    assert list(seen[0].columns) == ["age", "income"]


def test_the_loggers_distribution_gives_propensities_bounds_and_distances():
    table = raw(3000)
    settings = {"payoff": "reward", "action": "item", "context": ["age", "income"]}

    def policy(name):
        return lambda frame: chances(name, frame.to_numpy())

    policies = {"new": policy("new"), "close": policy("close")}
    log = rd.Log.from_table(table, policies=policies, logged_by=policy("logger"), **settings)
    plain = rd.Log.from_table(table, policies=policies, **COLUMNS)
    np.testing.assert_allclose(log.arrays().log_density, np.log(table["pscore"].to_numpy()))
    found, free = log.evaluate(compare="pairs"), plain.evaluate(compare="pairs")
    features = table.select("age", "income").to_numpy()
    ratio = (chances("new", features) / chances("logger", features)).max(axis=1)
    assert found.weight_bound[0] == pytest.approx(1.25 * ratio[:256].max(), rel=1e-6)
    assert np.isinf(free.weight_bound).all()
    assert (found.width < 0.95 * free.width).all()
    apart, wide = found.differences()[0], free.differences()[0]
    assert apart.high - apart.low < 0.8 * (wide.high - wide.low)


def test_rows_beyond_the_first_rows_bound_cost_nothing_in_coverage():
    """Contexts that get wilder after the first 256 rows: 200 logs at level 0.8, misses as often as allowed or less.

    If it held 80% of the time, fewer than the stated number would be seen one time in 1,000.
    """
    rng, held, rows = np.random.default_rng(1), 0, 700
    for _ in range(200):
        x = np.where(np.arange(rows) < 256, 0.2, 1.0) * rng.uniform(-1, 1, rows)
        logger = softmax(np.column_stack([x, -x]))
        wild = softmax(np.column_stack([-3 * x, 3 * x]))
        action = (rng.random(rows) > logger[:, 0]).astype(int)
        reward = (rng.random(rows) < 0.9).astype(float)
        table = {"x": x, "action": action, "reward": reward}
        log = rd.Log.from_table(table, payoff="reward", action="action", logged_by=logger, policies={"wild": wild})
        found = log.evaluate(level=0.8)
        held += bool(found.low[0] <= 0.9 <= found.high[0])
    assert log.arrays().unusual.any()
    assert held >= stats.binom.ppf(1e-3, 200, 0.8)


def test_a_floor_of_the_propensities_bounds_weights():
    table = raw(3000)
    floor = 0.1
    log = rd.Log.from_table(table, policies={"new": new}, propensity_floor=floor, **COLUMNS)
    found, free = log.evaluate(), expected(table).evaluate()
    assert found.weight_bound[0] == 10.0
    assert found.width[0] < free.width[0]
    with pytest.raises(errors.LogError, match=r"is 0\.\d+, below propensity_floor=0\.3"):
        rd.Log.from_table(table, policies={"new": new}, propensity_floor=0.3, **COLUMNS)


def test_steps_become_episodes():
    table = raw(300).with_columns(session=pl.int_range(300) // 3)
    log = rd.Log.from_table(table, policies={"new": new}, episode="session", payoff_range=(0, 3), **COLUMNS)
    steps = expected(table).arrays()
    arrays = log.arrays()
    assert len(log) == 100
    np.testing.assert_allclose(arrays.payoffs * 3, steps.payoffs.reshape(100, 3).sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(arrays.log_likelihoods[:, 0], steps.log_likelihoods.reshape(100, 3).sum(axis=1))
    np.testing.assert_allclose(arrays.log_density, steps.log_density.reshape(100, 3).sum(axis=1))


def test_loggers_by_name_are_balanced():
    table = raw().with_columns(who=pl.lit("new"))
    log = rd.Log.from_table(
        table, payoff="reward", action="item", logger="who", context=["age", "income"], policies={"new": new}
    )
    assert log.weights == "balance"
    np.testing.assert_allclose(log.evaluate().mis, table["reward"].mean())


def bad(table, rows, column, value):
    values = table[column].to_list()
    for row in rows:
        values[row] = value
    return table.with_columns(pl.Series(column, values, strict=False))


def spoiled(value, row=7):
    def policy(frame):
        found = np.array(new(frame))
        found[row] *= value
        return found

    return policy


@pytest.mark.parametrize(
    ("change", "settings", "error", "words"),
    [
        (None, {"payoff": "rewrad"}, errors.LogError, "no column 'rewrad'; did you mean 'reward'"),
        (None, {"context": ["age", "zip"]}, errors.LogError, "no column 'zip'"),
        (
            None,
            {"policies": {"p": spoiled(1.5)}},
            errors.LogError,
            r"'p' do not sum to 1 in 1 rows \(7\) \(their sum is 1.5",
        ),
        (None, {"policies": {"p": spoiled(math.nan)}}, errors.LogError, r"'p' are not finite in 1 rows \(7\)"),
        (None, {"policies": {"p": spoiled(-1.0)}}, errors.LogError, r"'p' are negative in 1 rows \(7\)"),
        (
            None,
            {"policies": {"p": lambda frame: np.ones(3)}},
            errors.LogError,
            r"must give probabilities of shape \(400, 3\)",
        ),
        (None, {"policies": {"p": ["age", "income"]}}, errors.LogError, "2 columns, and there are 3 actions"),
        (
            None,
            {"policies": {"p": {"scarf": "age"}}},
            errors.LogError,
            "action 'scarf', which is not among the actions",
        ),
        (None, {"policies": {"p": "country"}}, errors.LogError, r"takes action 'ch', .*in 400 rows \(0, 1, 2"),
        (None, {"policies": {"p": object()}}, errors.ParameterError, "must be a function, a fitted classifier"),
        (None, {"action": None}, errors.ParameterError, "name the column of actions"),
        (None, {"actions": ["cap", "hat"]}, errors.LogError, "column 'item' has action 'tie'"),
        (None, {"propensity_floor": 2.0}, errors.ParameterError, "propensity_floor"),
        (
            (["pscore", [3, 9], 0.0]),
            {},
            errors.BadRowsError,
            r"'pscore' is not a probability in \(0, 1\] in 2 rows \(3, 9\)",
        ),
        ((["pscore", [3], 1.5]), {}, errors.BadRowsError, r"'pscore' is not a probability in \(0, 1\] in 1 row \(3\)"),
        ((["reward", [5], None]), {}, errors.BadRowsError, r"payoff is not finite in 1 row \(5\)"),
    ],
)
def test_what_is_wrong_is_named_with_its_rows(change, settings, error, words):
    table = raw()
    if change is not None:
        table = bad(table, change[1], change[0], change[2])
    with pytest.raises(error, match=words):
        rd.Log.from_table(table, **({"policies": {"new": new}} | COLUMNS | settings))


def test_bad_propensities_can_be_left_out():
    table = bad(raw(), [3, 9], "pscore", 0.0)
    assert len(rd.Log.from_table(table, policies={"new": new}, skip_bad_rows=True, **COLUMNS)) == 398


def test_folders_with_two_schemas_and_what_is_no_table(tmp_path):
    table = raw()
    table.write_parquet(tmp_path / "a.parquet")
    table.with_columns(pl.col("reward").cast(pl.Int64)).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(errors.LogError, match=r"b.parquet has other columns than a.parquet \(reward\)"):
        rd.Log.from_table(tmp_path, policies={"new": new}, **COLUMNS)
    (tmp_path / "empty").mkdir()
    with pytest.raises(errors.LogError, match=r"no \.parquet file"):
        rd.Log.from_table(tmp_path / "empty", policies={"new": new}, **COLUMNS)
    with pytest.raises(errors.LogError, match="is no table that can be read"):
        rd.Log.from_table(42, policies={"new": new}, **COLUMNS)


def test_feedback_of_open_bandit_pipeline():
    """IPW and SNIPW by their definitions, with positions."""
    rng = np.random.default_rng(2)
    rows, actions, positions = 500, 4, 3
    action, position = rng.integers(0, actions, rows), rng.integers(0, positions, rows)
    dist = rng.dirichlet(np.ones(actions), size=(rows, positions)).transpose(0, 2, 1)
    feedback = {
        "n_rounds": rows,
        "n_actions": actions,
        "action": action,
        "position": position,
        "reward": (rng.random(rows) < 0.3).astype(int),
        "pscore": np.full(rows, 1 / actions),
        "context": rng.random((rows, 2)),
    }
    found = rd.Log.from_obp(feedback, {"ours": dist}).evaluate()
    weight = dist[np.arange(rows), action, position] * actions
    assert found.mis[0] == pytest.approx(np.mean(weight * feedback["reward"]))
    assert found.self_normalised[0] == pytest.approx(np.average(feedback["reward"], weights=weight))
    assert rd.Log.from_obp(feedback, dist).candidates == ("candidate",)
    with pytest.raises(errors.LogError, match="needs action, reward and pscore"):
        rd.Log.from_obp({"action": action}, dist)
    with pytest.raises(errors.LogError, match=r"shape \(n, actions, positions\)"):
        rd.Log.from_obp(feedback, dist[:10])
    with pytest.raises(errors.LogError, match="does not sum to 1"):
        rd.Log.from_obp(feedback, 2 * dist)


def test_rows_that_were_not_observed_long_enough_are_left_out():
    when = [f"2024-03-{1 + row // 20:02d}T12:00:00" for row in range(400)]
    table = raw().with_columns(when=pl.Series(when).str.to_datetime(), text=pl.Series(when), number=pl.int_range(400))
    asked = {"policies": {"new": new}} | COLUMNS
    for time, until in (("when", "2024-03-05T23:00:00"), ("text", "2024-03-06"), ("number", 99), ("number", "99")):
        log = rd.Log.from_table(table, time=time, observed_until=until, **asked)
        assert len(log) == 100
        np.testing.assert_array_equal(log.arrays().payoffs, table["reward"][:100])
    for settings, words in (
        ({"observed_until": 3}, "name it with time="),
        ({"time": "number", "observed_until": "noon"}, "cannot be compared with column 'number'"),
        ({"time": "whn", "observed_until": 3}, "did you mean 'when'"),
        ({"time": "number", "observed_until": -1}, "it begins at 0"),
    ):
        with pytest.raises((errors.ParameterError, errors.LogError), match=words):
            rd.Log.from_table(table, **asked, **settings)
