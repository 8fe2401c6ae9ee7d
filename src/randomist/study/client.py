"""The other end of the service, with the standard library alone: the same words, the same errors, and retries.

An ask carries a ticket and a tell names its trial, so repeating either is harmless: what is lost on the way is sent
again.
"""

from __future__ import annotations

import http.client
import json
import math
import random
import ssl
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload
from urllib.parse import quote, urlsplit

import numpy as np
from numpy.typing import ArrayLike, NDArray

from randomist import errors
from randomist._checks import flag
from randomist._json import for_json, frozen
from randomist.errors import MediatorError, ParameterError, RandomistError, ServiceError, ShapeError
from randomist.histories.estimates import Estimates
from randomist.learners.payoffs import number
from randomist.learners.trial import Trial
from randomist.study.checks import LARGEST_BATCH, check_id, check_name, check_ticket, clean
from randomist.study.records import AuditEntry

if TYPE_CHECKING:
    from randomist.families.base import Family
    from randomist.learners.box.auto.interval import Confirmation, Interval
    from randomist.policies.episodes import Episode

PATIENCE = 60.0  # seconds to go on trying
TIMEOUT = 30.0  # seconds for one answer
AGAIN = (429, 502, 503, 504)  # statuses after which it tries again


class StudyInfo(NamedTuple):
    """What the service says of a study."""

    name: str
    learner: str
    lease: float
    created_at: float
    asked: int
    told: int
    failed: int
    retracted: int = 0
    archived: bool = False


class Client:
    """A service by its address: `Client("http://127.0.0.1:8431", token=...)`. Safe for threads."""

    def __init__(self, address: str, token: str | None = None, *, patience: float = PATIENCE, timeout: float = TIMEOUT):
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ParameterError(f"a service's address is http://host:port or https://host:port, got {address!r}")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._path = parts.path.rstrip("/")
        self._headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self.patience, self.timeout = patience, timeout
        self._local = threading.local()

    def studies(self) -> list[str]:
        """The names of all studies."""
        return [str(name) for name in self.call("GET", "studies")["studies"]]

    def create(
        self, name: str, learner: str, space: dict[str, Any], /, *, lease: float = 3600.0, **settings: Any
    ) -> RemoteStudy:
        """A new study, of a learner of the command line's names. Where its answer was lost, `study` finds it."""
        body = {"name": check_name(name), "learner": learner, "space": space, "settings": settings, "lease": lease}
        self.call("POST", "studies", body, repeat=False)
        return RemoteStudy(self, name)

    def study(self, name: str) -> RemoteStudy:
        """A study that exists."""
        found = RemoteStudy(self, check_name(name))
        found.info()
        return found

    def delete(self, name: str) -> None:
        """Forget a study and all of its trials, for good. Where the answer was lost, `studies` shows it."""
        self.call("DELETE", f"studies/{quote(check_name(name), safe='')}", repeat=False)

    def call(self, method: str, path: str, body: Any = None, *, repeat: bool = True) -> Any:
        """One request and its answer as JSON; tried again while the service is away, if it may be repeated."""
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        headers = self._headers | ({} if content is None else {"Content-Type": "application/json"})
        started, pause = time.monotonic(), 0.05
        while True:
            wait = 0.0
            try:
                connection = self._connection()
                connection.request(method, f"{self._path}/api/v1/{path}", content, headers)
                answer = connection.getresponse()
                said = answer.read()
            except (OSError, http.client.HTTPException) as error:
                self._drop()
                if isinstance(error, ssl.SSLCertVerificationError):
                    raise ServiceError(f"{self._host} has no certificate to trust: {error}") from error
                problem: RandomistError = ServiceError(f"the service at {self._host}:{self._port} is away: {error!r}")
                again = repeat or isinstance(error, ConnectionRefusedError)
            else:
                if 200 <= answer.status < 300:
                    return _read(said)
                problem, again = (
                    _problem(answer.status, said),
                    answer.status in AGAIN and (repeat or answer.status == 429),
                )
                wait = _seconds(answer.headers.get("Retry-After"))
            if not again or time.monotonic() - started + wait > self.patience:
                raise problem
            time.sleep(max(wait, pause) * random.uniform(0.5, 1.0))
            pause = min(2 * pause, 2.0)

    def close(self) -> None:
        """Let go of this thread's connection."""
        self._drop()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connection(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            connection = self._local.connection = kind(self._host, self._port, timeout=self.timeout)
        return connection

    def _drop(self) -> None:
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None


class RemoteStudy:
    """A study behind a service: ask, tell, fail, estimates, recommend, as a study in this process has them."""

    def __init__(self, client: Client, name: str) -> None:
        self.client, self.name = client, name
        self._path = f"studies/{quote(name, safe='')}"

    def info(self) -> StudyInfo:
        """Its learner and counters."""
        said = self.client.call("GET", self._path)
        return StudyInfo(**{field: said[field] for field in StudyInfo._fields if field in said})

    @overload
    def ask(self, *, lease: float | None = None, worker: str | None = None, ticket: str | None = None) -> Trial: ...
    @overload
    def ask(
        self, batch: int, *, lease: float | None = None, worker: str | None = None, ticket: str | None = None
    ) -> list[Trial]: ...
    def ask(
        self,
        batch: int | None = None,
        *,
        lease: float | None = None,
        worker: str | None = None,
        ticket: str | None = None,
    ) -> Trial | list[Trial]:
        """The next trial, or the next `batch` of them."""
        body = {"batch": 1 if batch is None else batch, "worker": worker, "lease": lease}
        trials = self._asked("ask", body, ticket)
        return trials[0] if batch is None else trials

    def tell(
        self,
        trial: Trial | int,
        payoff: float | None = None,
        *,
        feasible: bool = True,
        log_likelihoods: Mapping[str, float] | ArrayLike | None = None,
    ) -> None:
        """The payoff of a trial, once, however often it has to be sent; or, of `Auto`, that it was not feasible.

        `log_likelihoods` are those of what was done under every policy, by name, or in the order of `names`.
        """
        body: dict[str, Any] = {"payoff": None if payoff is None and not feasible else number(payoff)}
        if not flag(feasible, "feasible"):
            body["feasible"] = False
        if log_likelihoods is not None:
            names = () if isinstance(log_likelihoods, Mapping) else self.names
            body["log_likelihoods"] = _likelihoods(log_likelihoods, names)
        self._close(trial, "tell", body)

    def tell_all(
        self,
        trials: Sequence[Trial | int],
        payoffs: ArrayLike,
        *,
        log_likelihoods: Sequence[Mapping[str, float] | ArrayLike] | None = None,
    ) -> None:
        """The payoffs of several trials, as many in a request as the service takes: as of a study in this process."""
        values = np.asarray(payoffs, dtype=object).ravel().tolist()
        given = [None] * len(trials) if log_likelihoods is None else list(log_likelihoods)
        if not len(trials) == len(values) == len(given):
            raise ShapeError(f"tell_all takes one payoff per trial; got {len(trials)} trials and {len(values)} payoffs")
        names = self.names if any(each is not None and not isinstance(each, Mapping) for each in given) else ()
        tells = [
            {"id": _id(trial), "payoff": number(value), "log_likelihoods": _likelihoods(each, names)}
            for trial, value, each in zip(trials, values, given, strict=True)
        ]
        parts = [tells[i : i + LARGEST_BATCH] for i in range(0, len(tells), LARGEST_BATCH)]
        for refused in [one for part in parts for one in self._tells(part)]:
            raise _error(refused["error"], refused["message"]) or ServiceError(refused["message"])

    def _tells(self, tells: list[dict[str, Any]]) -> list[dict[str, str]]:
        """Tell these; what the service refused of them. More than it takes in one request are sent in two."""
        try:
            refused: list[dict[str, str]] = self.client.call("POST", f"{self._path}/tells", {"tells": tells})["refused"]
            return refused
        except ServiceError as error:
            if error.status != 413 or len(tells) == 1:
                raise
        half = len(tells) // 2
        return self._tells(tells[:half]) + self._tells(tells[half:])

    def tell_episode(self, trial: Trial | int, episode: Episode) -> None:
        """What the policy of a trial did, in a study of policies over trajectories."""
        arrays = {name: np.asarray(getattr(episode, name)).tolist() for name in ("observations", "actions", "rewards")}
        self._close(trial, "episode", arrays | {"payoff": None if episode.payoff is None else number(episode.payoff)})

    def fail(self, trial: Trial | int, reason: str = "") -> None:
        """A trial that will never be answered."""
        self._close(trial, "fail", {"reason": clean(reason)})

    def retract(self, trial: Trial | int, reason: str = "") -> None:
        """Take a tell back: its row stays, marked, and does not count any more."""
        self._close(trial, "retract", {"reason": clean(reason)})

    def archive(self) -> None:
        """Make the study read-only for everybody."""
        self.client.call("POST", f"{self._path}/archive")

    def unarchive(self) -> None:
        """Open it again."""
        self.client.call("POST", f"{self._path}/unarchive")

    @property
    def archived(self) -> bool:
        """Whether the study may only be read."""
        return self.info().archived

    def rename(self, name: str) -> None:
        """Give the study another name. Where the answer was lost, `Client.studies` shows it."""
        self.client.call("POST", f"{self._path}/rename", {"name": check_name(name)}, repeat=False)
        self.name, self._path = name, f"studies/{quote(name, safe='')}"

    def audit(self) -> list[AuditEntry]:
        """Who did what to the study, besides asking and telling, in order."""
        return [AuditEntry(**entry) for entry in self.client.call("GET", f"{self._path}/audit")["entries"]]

    def confirm(
        self, n: int, *, lease: float | None = None, worker: str | None = None, ticket: str | None = None
    ) -> list[Trial]:
        """`n` trials that play the recommended point itself; `Auto` has it."""
        return self._asked("confirm", {"n": n, "worker": worker, "lease": lease}, ticket)

    def confirmed(self, level: float = 0.95) -> Confirmation:
        """What the plays of the last `confirm` say about that point alone."""
        from randomist.learners.box.auto.interval import Confirmation

        said = self.client.call("GET", f"{self._path}/confirmation?level={float(level)}")
        return Confirmation(_point(said["point"]), said["plays"], _interval(said["mean"]), _interval(said["median"]))

    def interval(self, point: ArrayLike | None = None, level: float = 0.95) -> Interval:
        """An interval for the mean payoff at a point, by default the recommended one; `Auto` has it."""
        where = None if point is None else np.asarray(point, float).tolist()
        return _interval(self.client.call("POST", f"{self._path}/interval", {"point": where, "level": level}))

    def add(
        self,
        member: Family | dict[str, Any] | None = None,
        name: str | None = None,
        *,
        log_likelihoods: Mapping[int, float] | None = None,
    ) -> int:
        """One more decision of a finite set: its number. Where its answer was lost, `names` shows whether it is there.

        `member` is a family of one member, or its JSON form, such as {"mean": 1.4, "std": 0.7}. Where policies are
        known by their likelihoods there is none, and `log_likelihoods` are by trial id.
        """
        state = member if isinstance(member, dict | None) else member.state()
        shown = None if state is None else {key: for_json(value) for key, value in state.items()}
        body: dict[str, Any] = {"member": shown, "name": name}
        if log_likelihoods is not None:
            body["log_likelihoods"] = {str(id_): _or_null(value) for id_, value in log_likelihoods.items()}
        return int(self.client.call("POST", f"{self._path}/decisions", body, repeat=False)["decision"])

    def retire(self, decision: int | str) -> None:
        """A decision, by number or name, is not played any more. Where its answer was lost, `active` shows it."""
        self.client.call("POST", f"{self._path}/decisions/retire", {"decision": decision}, repeat=False)

    @property
    def names(self) -> tuple[str, ...]:
        """What each decision of a finite set is called: its name, or its number."""
        return tuple(str(one["name"]) for one in self._decisions())

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which decisions have not been retired.  (K,)"""
        return np.array([one["active"] for one in self._decisions()], np.bool_)

    def estimates(self) -> Estimates:
        """What the history says about every decision of a finite set."""
        return _estimates(self.client.call("GET", f"{self._path}/estimates"))

    def estimate(self, decisions: ArrayLike) -> Estimates:
        """What the history says about any decisions of a box."""
        body = {"decisions": np.asarray(decisions, float).tolist()}
        return _estimates(self.client.call("POST", f"{self._path}/estimates", body))

    def recommend(self) -> Any:
        """The decision with the best estimated value."""
        return _point(self.client.call("GET", f"{self._path}/recommendation")["decision"])

    def _decisions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.call("GET", f"{self._path}/decisions")["decisions"]
        return found

    def _asked(self, how: str, body: dict[str, Any], ticket: str | None) -> list[Trial]:
        body["ticket"] = uuid.uuid4().hex if ticket is None else check_ticket(ticket)
        said = self.client.call("POST", f"{self._path}/{how}", body)
        return [
            Trial(t["id"], _point(t["decision"]), _point(t["mediator"]), *map(t.get, ("parameters", "name", "purpose")))
            for t in said["trials"]
        ]

    def _close(self, trial: Trial | int, how: str, body: dict[str, Any]) -> None:
        self.client.call("POST", f"{self._path}/trials/{_id(trial)}/{how}", body)


def _id(trial: Trial | int) -> int:
    return check_id(trial.id if isinstance(trial, Trial) else trial)


def _likelihoods(given: Mapping[str, float] | ArrayLike | None, names: Sequence[str]) -> dict[str, float | None] | None:
    """Log-likelihoods as JSON: by name, or in the order of these names."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        values = np.asarray(given, dtype=object).ravel().tolist()
        if len(values) != len(names):
            raise ShapeError(f"log_likelihoods must have one entry per policy, {len(names)}, got {len(values)}")
        given = dict(zip(names, values, strict=True))
    return {str(name): _or_null(value) for name, value in given.items()}


def _or_null(value: Any) -> float | None:
    """A log-likelihood as JSON: -inf is null; the service refuses what is not a number."""
    if value is None or value == -math.inf:
        return None
    return number(value) if isinstance(value, int | float | np.number) and not isinstance(value, bool) else _odd(value)


def _odd(value: Any) -> float:
    raise MediatorError(f"log_likelihoods must be numbers or -inf, got {value!r:.80}")


def _point(value: Any) -> Any:
    return frozen(np.array(value, float)) if isinstance(value, list) else value


def _interval(said: dict[str, Any]) -> Interval:
    """Null is what an interval that is not supported has."""
    from randomist.learners.box.auto.interval import Interval

    usual: dict[str, Any] = {"mean": np.nan, "low": -np.inf, "high": np.inf}
    return Interval(**{key: usual[key] if value is None else value for key, value in said.items()})


def _estimates(said: dict[str, Any]) -> Estimates:
    """Null is infinite. The logarithm of the effective samples is the one of what was sent."""
    columns = {
        name: np.array([np.inf if v is None else v for v in said[name]], float)
        for name in ("value", "effective_samples", "threshold", "width", "coverage")
    }
    with np.errstate(divide="ignore"):
        log_effective = np.log(columns["effective_samples"])
    return Estimates(plays=np.array(said["plays"], np.int64), log_effective_samples=log_effective, **columns)


def _read(said: bytes) -> Any:
    try:
        return json.loads(said)
    except ValueError as error:
        raise ServiceError(f"the service answered no JSON: {said[:80]!r}") from error


def _problem(status: int, said: bytes) -> RandomistError:
    """The library's own error where the service names one."""
    try:
        answer = json.loads(said)
        name, message = str(answer["error"]), str(answer["message"])
    except (ValueError, KeyError, TypeError):
        name, message = "", said[:200].decode("utf-8", "replace")
    return _error(name, message) or ServiceError(f"the service answered {status}: {message}", status)


def _error(name: str, message: str) -> RandomistError | None:
    """The library's error of that name."""
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, RandomistError) and not issubclass(kind, ServiceError):
        return kind(message)
    return None


def _seconds(text: str | None) -> float:
    return min(float(text), 10.0) if text is not None and text.isdigit() else 0.0
