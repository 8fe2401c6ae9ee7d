"""One tree of errors, raised at the border: each names the value, the bound and the remedy."""


class RandomistError(Exception):
    """Base of every error that randomist raises on purpose."""


class ParameterError(RandomistError, ValueError):
    """A setting is outside its bound: a std that is not positive, an unknown option, an empty range."""


class ShapeError(RandomistError, ValueError):
    """An array has the wrong number of dimensions or entries."""


class EmptySpaceError(RandomistError, ValueError):
    """A space without a single decision."""


class PayoffError(RandomistError, ValueError):
    """A payoff that is no finite number."""


class PayoffOutOfRangeError(PayoffError):
    """A payoff outside `payoff_range` while `out_of_range="refuse"`."""


class UnknownTrialError(RandomistError, LookupError):
    """A trial that this learner never asked."""


class ClosedTrialError(RandomistError, ValueError):
    """A trial that was told or failed before."""


class MediatorError(RandomistError, ValueError):
    """A mediator that cannot have come from the decision it is told for."""


class StateError(RandomistError, ValueError):
    """A saved state that does not describe a learner of this version."""


class TaskError(RandomistError, ValueError):
    """An unknown task, or one that does not fit the learner."""


class NoDataError(RandomistError, ValueError):
    """A question that needs at least one told payoff."""
