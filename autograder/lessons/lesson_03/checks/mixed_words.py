"""What may be wrong with the updates of 3.3 and with the norm that it tells, by the names of its twin's mistakes."""

from __future__ import annotations

_DIVIDED_WRONG = "divided by the wrong count: "
# The first pass clips nothing: what is wrong there is no clip. Where a clip strikes, a wrong one is the likely mistake.
WRONG_UPDATES = {
    "one group clipped": "only the gradients of the optimizer's first parameter group are clipped",
    "one group cleared": "only the gradients of the optimizer's first parameter group are cleared",
    "left over": "gradients that were there before the call reach the first update: nothing clears them",
    "clipped at every micro-step": "clipping at every micro-step: what is left of the sum depends on the order of "
    "the micro-batches",
    "clipped while scaled": "the clip sees scaled gradients: `unscale_` comes after it, or not at all",
    "unclipped": "no clipping, or clipping after the step",
    "clipped by value": "each value is clipped, not the norm of them all",
    "clipped to 1": "clipped to a norm of 1, whatever `max_norm` says",
    "never cleared": "gradients are never cleared: each update adds those of all updates before",
    "cleared inside": "`zero_grad` inside the window: only the last micro-batch reaches the step",
    "first alone": "the windows begin at the wrong place: the first micro-batch makes an update of its own, and the "
    "last ones make none",
    "not divided": "the loss is not divided by the samples of the window: the means of the micro-batches are added up",
    "sum": "the loss is not divided by the samples of the window: the sum is used as it is",
    "mean of means": f"{_DIVIDED_WRONG}the number of micro-batches, which are uneven",
    "full window": f"{_DIVIDED_WRONG}`grad_accum_steps`, also where the window is shorter and micro-batches are uneven",
    "sum over steps": f"{_DIVIDED_WRONG}sums of losses, divided by the number of micro-batches",
    "never unscaled": "the step is taken with scaled gradients",
    "schedule first": "the scheduler moves before the optimizer: the first rate is never used",
    "mask from ids": "the mask is made from the ids, and is not the one that came: an id of 0 may stand inside a text",
    "mask from lengths": "the mask is made from the lengths, and is not the one that came: padding may stand before a "
    "text",
    "one autocast": "one autocast around all updates: until it is left it keeps its bfloat16 copies of the weights, so "
    "that later updates compute with the first weights",
}
WRONG_NORM = {
    "clipped": "the norm *after* clipping",
    "scaled": "the norm of gradients that are still scaled",
    "last": "the norm of the last update alone",
    "largest": "the largest norm, where the mean is asked for",
    "norms": "a sum of norms that is divided by nothing",
    "first group": "the norm of the optimizer's first parameter group alone",
    "root": "the root of the mean of the squared norms, where the mean of the norms is asked for",
    "by samples": "a mean over samples, where that over updates is asked for",
    "": "another norm than that of all gradients of an update, unscaled, before they are clipped",
}
