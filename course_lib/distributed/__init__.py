"""Several processes that train one model: who is who, what they add up, and models split over them."""
# ruff: noqa: F401

from importlib import import_module
from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from course_lib.distributed.fsdp import ShardedParts, WholeWeights, load_whole_weights, shard
    from course_lib.distributed.ranks import (
        TIMEOUT_VARIABLE,
        Ranks,
        cleanup,
        device_of,
        from_main_process,
        gather_objects,
        is_elastic,
        is_lost_peer,
        main_process_first,
        moving_buffers,
        no_sync,
        quiet_other_ranks,
        rehearsal,
        setup,
        share_buffers,
        sum_across_ranks,
        unwrap,
        whole,
        world_size,
        wrap_ddp,
    )

_load, __dir__, __all__ = attach(__name__, __file__)


def __getattr__(name: str) -> object:
    if name in ("ShardedOrder", "shard_evenly"):  # an old name: released lessons look for it here
        return getattr(import_module("course_lib.data.sharding"), name)
    return _load(name)
