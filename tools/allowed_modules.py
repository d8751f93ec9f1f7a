"""Which modules a solution's cell may use, and what of them is left out: the hand-written half of the list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tools import ordinary


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What of a module is on the list.

    Attributes:
        only: these names and no other; empty for all that the module defines and shows.
        but: what of it is left out.
        homes: the other modules that it takes its functions from, as C extensions are.
        every: it names in `__all__` less than it offers.
    """

    only: frozenset[str] = frozenset()
    but: frozenset[str] = frozenset()
    homes: tuple[str, ...] = ()
    every: bool = False


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _only(text: str) -> Rule:
    return Rule(only=_words(text))


def _but(text: str = "", *homes: str, every: bool = False) -> Rule:
    return Rule(but=_words(text), homes=homes, every=every)


# What is left out of a module runs text, works a name out as it runs, changes what it is given, reaches for files,
# processes or the net, or sets something for the whole process.
_LIBRARY = {
    **dict.fromkeys(
        _words("""
    abc array base64 binascii bisect calendar cmath collections collections.abc colorsys copy csv datetime
    decimal difflib fnmatch fractions graphlib hashlib heapq hmac html itertools json keyword math numbers
    queue random re secrets shlex statistics struct textwrap time typing unicodedata uuid zlib zoneinfo
"""),
        _but("get_type_hints ForwardRef evaluate_forward_ref tzset clock_settime clock_settime_ns"),
    ),
    "contextlib": _but("redirect_stdout redirect_stderr chdir"),
    "dataclasses": _but("make_dataclass"),
    "enum": _but("global_enum EnumMeta EnumType"),
    "functools": _but("update_wrapper"),
    "operator": _but("call"),
    "pprint": _but(),
    "string": _but("Formatter"),
    "types": _only(
        "GeneratorType MappingProxyType NoneType NotImplementedType SimpleNamespace TracebackType"
    ),
    "ast": _only("literal_eval"),
    "io": _only("BytesIO StringIO SEEK_SET SEEK_CUR SEEK_END IOBase BufferedIOBase RawIOBase TextIOBase"),
    "gc": _only(
        "collect disable enable freeze get_count get_stats get_threshold isenabled set_threshold unfreeze"
    ),
    "sys": _only(
        "argv byteorder executable exit float_info getrecursionlimit getrefcount getsizeof hash_info implementation "
        "int_info intern maxsize maxunicode platform stderr stdin stdout version version_info"
    ),
    "os": _only("PathLike cpu_count environ fspath getpid linesep process_cpu_count sched_getaffinity sep"),
    "os.path": _but(),
    "platform": _only(
        "machine node platform processor python_implementation python_version release system uname"
    ),
    "logging": _only(
        "CRITICAL DEBUG ERROR INFO NOTSET WARNING Handler LogRecord Logger LoggerAdapter NullHandler "
        "StreamHandler basicConfig critical debug disable error exception getLogger getLevelName info log warning"
    ),
    "warnings": _only("catch_warnings filterwarnings resetwarnings simplefilter warn"),
    "traceback": _only("format_exc format_exception format_exception_only print_exc print_exception"),
    "weakref": _only("ReferenceType WeakKeyDictionary WeakSet WeakValueDictionary proxy ref"),
    # Files: whether a cell may read and write them is asked for besides.
    "pathlib": _but(),
    "tempfile": _only("NamedTemporaryFile TemporaryDirectory TemporaryFile gettempdir mkdtemp mkstemp"),
    "shutil": _only("copy copy2 copyfile copyfileobj copytree move rmtree disk_usage"),
    "zipfile": _only("BadZipFile Path ZIP_DEFLATED ZIP_STORED ZipFile ZipInfo is_zipfile"),
    "glob": _only("glob iglob"),
    "gzip": _only("GzipFile compress decompress open"),
    # Threads and processes, asked for likewise.
    "threading": _only(
        "Barrier BoundedSemaphore Condition Event Lock RLock Semaphore Thread Timer active_count current_thread "
        "get_ident local main_thread"
    ),
    "asyncio": _only(
        "CancelledError Condition Event Future Lock Queue Semaphore Task TaskGroup TimeoutError as_completed "
        "create_task current_task ensure_future gather get_event_loop get_running_loop new_event_loop run "
        "run_coroutine_threadsafe shield sleep timeout to_thread wait wait_for"
    ),
    "concurrent.futures": _only(
        "ALL_COMPLETED CancelledError Executor FIRST_COMPLETED FIRST_EXCEPTION Future ProcessPoolExecutor "
        "ThreadPoolExecutor TimeoutError as_completed wait"
    ),
    "multiprocessing": _only(
        "Array Barrier BoundedSemaphore Condition Event JoinableQueue Lock Manager Pipe Pool Process Queue RLock "
        "Semaphore SimpleQueue TimeoutError Value active_children cpu_count current_process get_context "
        "get_start_method set_start_method"
    ),
    "multiprocessing.pool": _only("Pool ThreadPool"),
    "multiprocessing.dummy": _only("Pool Process Queue Lock Event"),
    # Third parties.
    "torch.multiprocessing": _only(
        "Pool Process Queue SimpleQueue get_context set_sharing_strategy set_start_method spawn"
    ),
    "yaml": _only("SafeLoader SafeDumper CSafeLoader YAMLError dump load safe_dump safe_load"),
    "tqdm": _only("tqdm trange"),
    "tqdm.auto": _only("tqdm trange"),
}
_NUMPY = _but(
    "savez_compressed loadtxt savetxt genfromtxt fromfile fromregex memmap DataSource open_memmap "
    "seterrcall seterrobj setbufsize set_string_function set_numeric_ops add_docstring add_newdoc "
    "add_newdoc_ufunc show_config show_runtime info source lookfor test get_include printoptions set_printoptions "
    "from_dlpack deprecate recarray nditer nested_iters"
)


def _operators() -> frozenset[str]:
    """The operators of torch that solutions are made of, in place too."""
    import torch

    both = ordinary.OPERATORS | {f"{name}_" for name in ordinary.OPERATORS}
    return frozenset(name for name in both if hasattr(torch, name))


_HOOKS = "register_optimizer_step_pre_hook register_optimizer_step_post_hook"
_CUDA = """
    Event OutOfMemoryError Stream amp can_device_access_peer current_device current_stream default_stream device
    device_count device_of empty_cache get_arch_list get_device_capability get_device_name get_device_properties
    get_rng_state get_rng_state_all initial_seed is_available is_bf16_supported is_initialized manual_seed
    manual_seed_all max_memory_allocated max_memory_reserved mem_get_info memory_allocated memory_reserved
    memory_stats memory_summary reset_peak_memory_stats seed seed_all set_device set_per_process_memory_fraction
    set_rng_state set_rng_state_all set_stream stream synchronize utilization
"""
_TORCH = {
    "torch": Rule(only=ordinary.CALLS | _operators()),
    "torch.version": _only("cuda hip git_version debug"),
    **dict.fromkeys(
        _words("""
    torch.nn torch.nn.modules torch.nn.modules.loss torch.nn.modules.linear torch.nn.modules.container
    torch.nn.modules.normalization torch.nn.modules.sparse
"""),
        Rule(only=ordinary.LAYERS),
    ),
    "torch.nn.functional": Rule(only=ordinary.FUNCTIONAL),
    "torch.nn.utils.rnn": _only("pad_sequence unpad_sequence"),
    "torch.optim": Rule(only=ordinary.OPTIMIZERS),
    "torch.linalg": Rule(only=ordinary.LINEAR_ALGEBRA),
    "torch.distributions": Rule(only=ordinary.DISTRIBUTIONS),
    "torch.func": _only(
        "functional_call grad grad_and_value hessian jacfwd jacrev jvp vjp vmap stack_module_state"
    ),
    "torch.futures": _only("Future collect_all wait_all"),
    "torch.special": _only(
        "entr erf erfc expit expm1 log1p log_softmax logit logsumexp sinc softmax xlog1py xlogy"
    ),
    **dict.fromkeys(
        _words("""
    torch.nn.init torch.nn.parameter torch.nn.parallel torch.nn.utils
    torch.nn.utils.clip_grad torch.nn.utils.parametrizations torch.nn.utils.parametrize
    torch.nn.utils.stateless torch.nn.attention
    torch.optim.lr_scheduler torch.optim.swa_utils torch.optim.optimizer torch.optim.adamw
    torch.optim.sgd torch.optim.adam torch.autograd.functional torch.amp torch.amp.grad_scaler
    torch.amp.autocast_mode torch.cuda.amp torch.random torch.utils.data torch.utils.data.dataset
    torch.utils.data.sampler torch.utils.data.dataloader torch.utils.data.distributed
    torch.fft torch.distributed.optim torch.distributed.algorithms.join
    torch.distributed.algorithms.ddp_comm_hooks.default_hooks
    torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook
"""),
        _but(
            f"{_HOOKS} calculate_gain DistributedOptimizer PostLocalSGDOptimizer functional_datapipe "
            "argument_validation runtime_validation runtime_validation_disabled register_flash_attention_impl "
            "activate_flash_attention_impl restore_flash_attention_impl thread_safe_generator sparse sparse_ "
            # They evaluate the texts of annotations.
            "IterDataPipe MapDataPipe DFIterDataPipe DataChunk",
            "torch",
        ),
    ),
    "torch.utils": Rule(only=frozenset({"parameters_to_vector"})),
    "torch.utils.checkpoint": _only(
        "checkpoint checkpoint_sequential create_selective_checkpoint_contexts "
        "CheckpointPolicy set_checkpoint_early_stop noop_context_fn"
    ),
    "torch.autograd": _only(
        "Function Variable backward detect_anomaly enable_grad grad gradcheck inference_mode "
        "no_grad set_detect_anomaly set_grad_enabled"
    ),
    "torch.autograd.function": _only("Function FunctionCtx once_differentiable"),
    "torch.autograd.graph": _only("register_multi_grad_hook Node"),
    "torch.autograd.profiler": _only("profile record_function"),
    "torch.profiler": _only("ProfilerAction ProfilerActivity profile record_function schedule"),
    "torch.testing": _only("assert_close make_tensor"),
    "torch.cuda": Rule(only=_words(_CUDA) - {"amp"}),
    "torch.mps": _only(
        "current_allocated_memory empty_cache get_rng_state manual_seed seed set_rng_state synchronize"
    ),
    "torch.cpu": _only("is_available synchronize device_count"),
    "torch.cpu.amp": _only("autocast GradScaler"),
    "torch.accelerator": _only("is_available current_accelerator synchronize device_count"),
    "torch.xpu": _only("is_available manual_seed_all synchronize"),
    "torch.backends": Rule(only=frozenset({"cudnn"})),
    "torch.backends.cudnn": _only("is_available version flags enabled benchmark deterministic allow_tf32"),
    "torch.backends.cuda": _only("is_built sdp_kernel matmul"),
    "torch.backends.mps": _only("is_available is_built"),
    "torch.backends.mkl": _only("is_available"),
    "torch.backends.mkldnn": _only("is_available enabled flags"),
    "torch.backends.openmp": _only("is_available"),
    # What it sends by is behind it: backends and stores, where no operator tells what was sent.
    "torch.distributed": _only(
        "init_process_group destroy_process_group is_available is_initialized is_torchelastic_launched get_rank "
        "get_world_size get_backend get_global_rank get_group_rank get_process_group_ranks new_group group "
        "ProcessGroup Work ReduceOp P2POp GradBucket all_reduce all_gather all_gather_into_tensor all_gather_object "
        "reduce reduce_scatter reduce_scatter_tensor broadcast broadcast_object_list gather gather_object scatter "
        "scatter_object_list send recv isend irecv batch_isend_irecv barrier monitored_barrier all_to_all "
        "all_to_all_single init_device_mesh DeviceMesh"
    ),
    "torch.distributed.fsdp": _only(
        "FullyShardedDataParallel FSDPModule MixedPrecisionPolicy ShardingStrategy fully_shard"
    ),
    "torch.nn.parallel.distributed": _only("DistributedDataParallel"),
}
_OF_RUNS = """
count_events paired_speedup peak_bytes own_loss own_gradients BetweenSteps Joined tune Search evaluate_run
compare_runs export_run Predictor check_hf_folder keep_hf_files save_hf_model write_hf_tokenizer
"""  # they measure, or work on folders
_COURSE = {
    name: _but(_OF_RUNS, "course_lib")
    for name in _words("""
    course_lib course_lib.data course_lib.data.batching course_lib.data.sharding course_lib.data.texts
    course_lib.data.tokenizer course_lib.data.encoding course_lib.distributed course_lib.models
    course_lib.models.transformers course_lib.models.lora course_lib.training course_lib.training.evaluation
    course_lib.training.loop course_lib.training.losses course_lib.training.memory
    course_lib.training.micro_batch course_lib.training.optim course_lib.training.precision
    course_lib.training.reproducibility course_lib.training.schedules course_lib.training.scores
    course_lib.training.callbacks course_lib.loop course_lib.lora
    course_lib.memory course_lib.micro_batch course_lib.optim course_lib.precision course_lib.reproducibility
    course_lib.schedules course_lib.early_stopping course_lib.callbacks course_lib.metrics
""")
}
MODULES: dict[str, Rule] = {
    **_LIBRARY,
    "numpy": _NUMPY,
    **dict.fromkeys(
        _words("""
    numpy.random numpy.linalg numpy.fft numpy.ma numpy.typing numpy.polynomial numpy.polynomial.polynomial
    numpy.polynomial.legendre numpy.polynomial.chebyshev numpy.polynomial.hermite
"""),
        _but("test", "numpy"),
    ),
    # Whose state says where in a table the next number stands, and nobody looks whether it does.
    "numpy.random": _but("test MT19937", "numpy"),
    "numpy.version": _only("version short_version full_version"),
    "numpy.testing": _only("assert_allclose assert_almost_equal assert_array_equal assert_equal"),
    "numpy.rec": _only("fromarrays fromrecords"),
    "numpy.lib": Rule(only=frozenset({"stride_tricks"})),
    "numpy.lib.stride_tricks": _only("broadcast_arrays broadcast_to sliding_window_view"),
    "scipy": Rule(only=frozenset({"stats"})),
    **dict.fromkeys(
        ("scipy.stats", "scipy.stats.qmc", "scipy.special"), _but("test fit gaussian_kde", "numpy")
    ),
    "scipy.optimize": _only(
        "bisect brentq curve_fit linear_sum_assignment minimize minimize_scalar root_scalar"
    ),
    **_TORCH,
    **_COURSE,
}

BUILTINS = _words("""
    ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError BrokenPipeError
    BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError
    ConnectionResetError DeprecationWarning EOFError Ellipsis EncodingWarning EnvironmentError Exception
    ExceptionGroup FileExistsError FileNotFoundError FloatingPointError FutureWarning GeneratorExit IOError
    ImportError ImportWarning IndentationError IndexError InterruptedError IsADirectoryError KeyError
    KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError NotADirectoryError NotImplemented
    NotImplementedError OSError OverflowError PendingDeprecationWarning PermissionError ProcessLookupError
    RecursionError ReferenceError ResourceWarning RuntimeError RuntimeWarning StopAsyncIteration StopIteration
    SyntaxError SyntaxWarning SystemError SystemExit TabError TimeoutError TypeError UnboundLocalError
    UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError UnicodeWarning UserWarning ValueError
    Warning ZeroDivisionError PythonFinalizationError abs aiter all anext any ascii bin bool bytearray bytes
    callable chr classmethod complex
    dict dir divmod enumerate filter float format frozenset hasattr hash hex id int isinstance issubclass iter len
    list map max memoryview min next object oct ord pow print property range repr reversed round set slice sorted
    staticmethod str sum super tuple type zip getattr setattr
""")
"""What a cell may call without importing it. `getattr`, `setattr`, `hasattr` and `type` are looked into."""

CLOSED = _words("""
    ag_await ag_code ag_frame ag_running cell_contents co_code co_consts cr_await cr_code cr_frame cr_origin
    f_back f_builtins f_code f_globals f_lasti f_lineno f_locals f_trace fdel fget fset func_closure gi_code gi_frame
    gi_yieldfrom tb_frame tb_lasti tb_next mro register ctypes dump tofile tobytes_ctypes
    apply_ map_ map2_ set_ share_memory share_memory_ storage typed_storage untyped_storage storage_type half bfloat16
    dumps from_file from_ipc_handle func pyfunc fromfile register_function register_datapipe_as_function
    register_backend reduce_ex_hook getstate_hook set_reduce_ex_hook set_getstate_hook const_data_ptr
    to_dlpack ipc_handle multiprocessing_context manager setLoggerClass loggerClass makeRecord
    setLogRecordFactory logRecordFactory format_map from_address from_buffer obj
    get_stack print_stack get_coro raw reconfigure cffi capsule hooks_dict_ref extra_dict_ref get_group_store
    findCaller
""")
"""Attributes of these classes that lead behind them: to frames, memory, files, other precisions, and to where processes
leave each other messages that no count sees."""

BEHIND = """
    _io abc argparse asyncio.base_events asyncio.events asyncio.futures asyncio.tasks builtins codecs
    concurrent.futures.process concurrent.futures.thread contextlib copy copyreg ctypes dataclasses enum fileinput
    functools gc importlib.abc importlib.machinery inspect io linecache logging logging.handlers mmap
    multiprocessing.connection multiprocessing.context multiprocessing.managers multiprocessing.pool
    multiprocessing.process multiprocessing.queues operator os pathlib pickle pkgutil pydoc queue runpy select
    selectors shelve shutil signal site socket string struct subprocess sys tempfile threading timeit traceback
    types typing unittest.mock warnings weakref zipfile zipimport
    numpy numpy.ctypeslib numpy.lib.npyio numpy.random numpy.lib.format yaml yaml.constructor yaml.loader tqdm.std
    torch torch._C torch._jit_internal torch._ops torch._tensor torch.autograd.function torch.autograd.graph
    torch.autograd.profiler torch.autograd.profiler_util torch.fx.graph torch.fx.graph_module torch.fx.interpreter
    torch.fx.node torch.fx.proxy torch.hub torch.jit torch.jit._script torch.library torch.nn.modules.module
    torch.nn.parallel.distributed torch.nn.utils.parametrize torch.optim.optimizer torch.overrides torch.package
    torch.profiler.profiler torch.serialization torch.storage torch.utils._python_dispatch torch.utils.checkpoint
    torch.utils.cpp_extension torch.utils.data._utils.worker torch.utils.data.dataloader
    torch.utils.data.datapipes.datapipe torch.utils.hooks torch._dynamo.eval_frame torch._library.custom_ops
    torch._functorch.aot_autograd torch._dynamo.output_graph torch._higher_order_ops.wrap
"""
"""Modules whose objects a cell may hold without naming one: what their classes have is not its own by its name."""
PLAIN = _words("guard loss point rest rows steps watch")
"""Names of theirs that tell nothing, and which solutions give to what is their own."""


OF_WORKBOOK = _words("""
    Score answer check check_quiz compare exam exercise hint predict predicted quiz
""")
"""What a notebook imports from `autograder`."""
LATER = {
    "collections.abc": "Buffer",
    "copy": "replace",
    "enum": "EnumDict",
    "functools": "Placeholder",
    "heapq": "heapify_max heappop_max heappush_max heappushpop_max heapreplace_max",
    "itertools": "batched",
    "math": "fma sumprod",
    "random": "binomialvariate",
    "statistics": "kde kde_random",
    "typing": "ReadOnly TypeAliasType TypeIs get_protocol_members is_protocol override",
    "uuid": "uuid6 uuid7 uuid8",
    "warnings": "deprecated",
}
"""What Pythons after the oldest that we support have besides."""
MORE = _words("""
    WORLD run_in_executor run_until_complete create_task then
    callbacks end_epoch history is_over loss pause scheduler validate
    converged degrees direction distribution fun grid iterations kernel left length m meta neighbors nodes points
    predict radius rate right status step successful temperature total_count transform x y
""")
"""Attributes that no class tells; and plain words that those of solutions have."""


def _generator() -> Iterator[int]:
    yield 0


def INSTANCES() -> Iterator[Any]:
    """One of each kind of object that cells handle and whose attributes no class tells."""
    import datetime
    import io
    import logging
    import pathlib
    import re

    import numpy as np
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2), nn.Dropout(), nn.GELU())
    yield from (
        model,
        *model,
        nn.Embedding(2, 2),
        nn.MultiheadAttention(2, 1),
        nn.TransformerEncoderLayer(2, 1, 2),
    )
    optimizer = torch.optim.AdamW(model.parameters())
    yield from (optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0))
    dataset = torch.utils.data.TensorDataset(torch.zeros(2))
    yield from (dataset, torch.utils.data.DataLoader(dataset))
    yield from (torch.zeros(1), (torch.zeros(1, requires_grad=True) * 2).grad_fn, torch.zeros(1).max(0))
    yield from (
        np.zeros(1),
        np.float64(1),
        np.dtype(int),
        np.random.default_rng(),
        np.iinfo(int),
        np.finfo(float),
    )
    yield from (
        io.BytesIO(),
        io.StringIO(),
        logging.getLogger("x"),
        pathlib.Path(),
        re.compile("x"),
        re.match("x", "x"),
    )
    yield from (datetime.datetime.now(), iter(()), _generator(), torch.finfo(torch.float32), OSError(1, ""))
    yield torch.autograd.profiler.profile(enabled=False)
    yield from _results()
    try:
        int("x")
    except ValueError as error:
        yield error
    yield from (UnicodeDecodeError("a", b"", 0, 1, ""), StopIteration(), json_error())


def _results() -> Iterator[Any]:
    """What functions give whose classes are private."""
    import numpy as np
    from scipy import optimize, stats
    from tokenizers import Encoding, Tokenizer, models

    a, b = np.arange(6.0), np.array([1.0, 0.0, 3.0, 2.0, 5.0, 3.0])
    test = stats.ttest_rel(a, b)
    yield from (
        test,
        test.confidence_interval(),
        stats.linregress(a, b),
        stats.wilcoxon(a, b),
        stats.ttest_1samp(a, 0),
    )
    yield from (
        stats.pearsonr(a, b),
        stats.bootstrap((a,), np.mean, n_resamples=20),
        stats.norm,
        stats.norm(),
    )
    yield from (
        stats.permutation_test((a, b), lambda x, y: x.sum() - y.sum(), n_resamples=9),
        stats.binomtest(2, 5),
    )
    yield optimize.minimize(lambda x: x @ x, [1.0])
    yield from (Tokenizer(models.WordLevel({"x": 0}, unk_token="x")), Encoding())


def json_error() -> Exception:
    """What `json.loads` raises."""
    import json

    try:
        json.loads("")
    except json.JSONDecodeError as error:
        return error
    raise AssertionError
