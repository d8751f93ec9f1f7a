# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Start here

# %%
from autograder import check, exercise, predict, quiz

# %% [markdown]
# ### 0.1 · Speedup

# %%
from autograder import exercise


@exercise("0.1")
def speedup(baseline_seconds: float, candidate_seconds: float) -> float:
    """How many times faster the candidate is than the baseline.

    Takes two durations of the same work, in seconds, each above zero.
    Returns 2.0 when the candidate needs half the time of the baseline, 1.0 when nothing changed.
    Raises ValueError when a duration is zero or negative.
    """
    ### BEGIN SOLUTION
    if baseline_seconds <= 0 or candidate_seconds <= 0:
        raise ValueError("durations must be above zero")
    return baseline_seconds / candidate_seconds
    ### END SOLUTION


# %%
check("0.1")
