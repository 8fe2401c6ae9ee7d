"""Parameters become behaviour: linear and small neural policies, their noisy versions, saved and played."""

from randomist.policies.base import Policy
from randomist.policies.linear import Linear
from randomist.policies.neural import Neural
from randomist.policies.noisy import GaussianPolicy, SoftmaxPolicy
from randomist.policies.saved import SavedPolicy, load_policy, policy_from_state, save_policy

__all__ = [
    "GaussianPolicy",
    "Linear",
    "Neural",
    "Policy",
    "SavedPolicy",
    "SoftmaxPolicy",
    "load_policy",
    "policy_from_state",
    "save_policy",
]
