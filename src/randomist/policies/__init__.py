"""Parameters become behaviour: linear and small neural policies, their noisy versions, how they are kept and played."""

from randomist.policies.policies import (
    GaussianPolicy,
    Linear,
    Neural,
    Policy,
    SavedPolicy,
    SoftmaxPolicy,
    load_policy,
    policy_from_state,
    save_policy,
    whole_number,
)

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
    "whole_number",
]
