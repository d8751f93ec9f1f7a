"""Names that are judged wherever they stand: attributes of Python itself, private ones, and what leads to files."""

from __future__ import annotations


def listed(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_OPERATORS = """
    __abs__ __add__ __and__ __divmod__ __floordiv__ __ceil__ __floor__ __round__ __trunc__ __invert__ __lshift__
    __matmul__ __mod__ __mul__ __neg__ __or__ __pos__ __pow__ __radd__ __rand__ __rdivmod__ __rfloordiv__ __rlshift__
    __rmatmul__ __rmod__ __rmul__ __ror__ __rpow__ __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __sub__
    __truediv__ __xor__ __iadd__ __iand__ __ifloordiv__ __ilshift__ __imatmul__ __imod__ __imul__ __ior__ __ipow__
    __irshift__ __isub__ __itruediv__ __ixor__
"""
COMPARING = listed("__eq__ __ne__ __lt__ __le__ __gt__ __ge__")
_USUAL = f"""
    {_OPERATORS} __eq__ __ne__ __lt__ __le__ __gt__ __ge__
    __init__ __new__ __call__ __len__ __length_hint__ __iter__ __next__ __reversed__ __getitem__ __setitem__
    __delitem__ __contains__ __missing__ __enter__ __exit__ __aenter__ __aexit__ __aiter__ __anext__ __await__
    __repr__ __str__ __format__ __bytes__ __bool__ __hash__ __int__ __float__ __complex__ __index__
    __post_init__ __getitems__ __init_subclass__ __class_getitem__ __doc__
"""
READ_FREELY = listed(
    f"{_USUAL} __name__ __qualname__ __module__ __version__ __dataclass_fields__ __members__ __notes__ __cause__"
)
"""Attributes of Python's own that tell nothing of what lies behind an object."""
OWN_READ_FREELY = listed("__dict__ __class__ __getattr__ __slots__ __match_args__")
"""More of them, where the object is the cell's own; of a class not `__dict__`, which holds its functions."""
OF_MODULES = listed("__name__ __version__ __doc__")
DEFINED_FREELY = listed(
    f"{_USUAL} __slots__ __match_args__ __getattr__ __set_name__ __setattr__ __delattr__ __get__ __set__ __getstate__ "
    "__setstate__ __copy__ __deepcopy__ __dir__ __sizeof__ __fspath__"
)
"""What a class of the cell may define; others decide how it is pickled, compared or looked at behind its back."""
NAMES = listed("__name__ __doc__ __debug__")

# Of torch, what a module's parts and the versions of a state_dict are kept in among it; and the public methods of
# named tuples, which have their underscore so that no field may bear their name.
_PRIVATE_BUT_KNOWN = (
    *("_foreach_", "_modules", "_parameters", "_buffers", "_metadata"),
    *("_non_persistent_buffers_set", "_flatten_dense_tensors", "_unflatten_dense_tensors"),
    *("_checkpoint_wrapped_module", "_asdict", "_fields", "_make", "_replace"),
)

_BEHIND = listed("""
    float16 complex32 float8_e4m3fn float8_e5m2
    ag_await ag_code ag_frame cell_contents co_code co_consts cr_await cr_code cr_frame cr_origin f_back f_builtins
    f_code f_globals f_lasti f_lineno f_locals f_trace fdel fget fset func_closure gi_code gi_frame gi_yieldfrom
    tb_frame tb_lasti tb_next ctypes from_address untyped_storage storage typed_storage data_as
    builtins os sys subprocess importlib inspect pickle marshal posix nt signal socket ctypeslib
    get_objects get_referents get_referrers mro registry
    fromfile memmap tofile latency_seconds bfloat16 half set_autocast_enabled set_default_dtype
    fork forkpty popen execv execve execvp posix_spawn posix_spawnp killpg setpriority sched_setaffinity
    import_module exec_module load_module run_path run_module Popen CDLL string_at memmove addressof py_object
    pythonapi settrace setprofile addaudithook
    apply_ map_ map2_ set_ share_memory share_memory_ to_dlpack multiprocessing_context
""")
_FILES = listed("""
    open read_text read_bytes write_text write_bytes unlink mkdir rmdir touch rename symlink_to hardlink_to chmod
    lchmod iterdir glob rglob walk samefile extractall
""")


MAY_BE_OWN = listed("storage half mro registry inspect signal os sys latency_seconds")
"""Of those, words that a cell may use for something of its own."""


def is_dunder(name: str) -> bool:
    """Whether it is one of Python's own, such as `__dict__`."""
    return name.startswith("__") and name.endswith("__")


def is_private(name: str) -> bool:
    """Whether it is nobody's business but its library's."""
    return name.startswith("_") and not is_dunder(name) and not name.startswith(_PRIVATE_BUT_KNOWN)


def leads_behind(name: str) -> bool:
    """Whether an attribute of this name leads behind its object: to frames, memory, modules, another precision."""
    return name in _BEHIND


def is_of_files(name: str) -> bool:
    """Whether an attribute of this name reads or changes files."""
    return name in _FILES
