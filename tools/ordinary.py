"""Which names of torch and of scipy solutions are made of: what computes with dense tensors, draws, trains and loads.

Left out is what no exercise needs and whose insides nobody here vouches for: layouts other than dense, kernels that
trust indices or lengths that their caller can change, the steps that fused kernels are made of, draws that use up as
many random numbers as their values say, hooks on what backward keeps, functions that read values on their way.
A name that a new version brings is left out until it is written down here.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ELEMENTWISE = _words("""
    abs absolute acos acosh add addcdiv addcmul angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh
    atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp
    clamp_max clamp_min clip copysign cos cosh deg2rad digamma div divide eq erf erfc erfinv exp exp2 expm1 fix
    float_power floor floor_divide fmax fmin fmod frac frexp gcd ge greater greater_equal gt heaviside hypot isclose
    isfinite isinf isnan isneginf isposinf isreal lcm ldexp le lerp less less_equal lgamma log log10 log1p log2
    logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logit lt maximum minimum mul multiply
    nan_to_num ne neg negative nextafter not_equal positive pow rad2deg real reciprocal remainder round rsqrt rsub
    sgn sigmoid sign signbit sin sinc sinh sqrt square sub subtract tan tanh true_divide trunc where xlogy
""")
_REDUCING = _words("""
    all allclose amax amin aminmax any argmax argmin argsort bincount bucketize corrcoef count_nonzero cov cummax cummin
    cumprod cumsum cumulative_trapezoid diff dist equal histc isin kthvalue logcumsumexp logsumexp max mean
    median min mode msort nanmean nanmedian nanquantile nansum norm numel prod quantile searchsorted sort std std_mean
    sum topk trace trapezoid trapz unique unique_consecutive var var_mean
""")
_SHAPING = _words("""
    atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors broadcast_to cartesian_prod cat chunk
    clone column_stack combinations concat concatenate detach diag diag_embed diagflat diagonal dsplit dstack
    flatten flip fliplr flipud gather hsplit hstack index_add index_copy index_fill index_put index_select masked_fill
    masked_scatter masked_select meshgrid moveaxis movedim narrow nonzero argwhere permute put ravel
    repeat_interleave reshape roll rot90 row_stack scatter scatter_add scatter_reduce select select_scatter
    slice_scatter split split_with_sizes squeeze stack swapaxes swapdims t take take_along_dim tensor_split tile
    transpose tril tril_indices triu triu_indices unbind unflatten unravel_index unsqueeze view_as_complex
    view_as_real vsplit vstack
""")
_MAKING = _words("""
    arange as_tensor empty empty_like eye from_numpy full full_like hamming_window hann_window linspace logspace
    ones ones_like range scalar_tensor tensor zeros zeros_like
    bernoulli multinomial normal rand rand_like randint randint_like randn randn_like randperm
    can_cast complex conj imag is_complex is_conj is_floating_point is_grad_enabled is_inference is_nonzero is_same_size
    is_signed is_storage is_tensor promote_types result_type fill
    zero_ fill_ dropout_ detach_
""")
_PRODUCTS = _words("""
    addbmm addmm addmv addr baddbmm bilinear bmm cdist chain_matmul cosine_similarity cross det dot einsum ger inner
    inverse kron linear logdet matmul matrix_exp matrix_power mm mv outer pdist pairwise_distance pinverse slogdet
    tensordot vander vdot
    adaptive_avg_pool1d avg_pool1d conv1d conv2d conv3d conv_transpose1d conv_transpose2d
    conv_transpose3d pixel_shuffle pixel_unshuffle
    binary_cross_entropy_with_logits cosine_embedding_loss hinge_embedding_loss kl_div margin_ranking_loss
    poisson_nll_loss triplet_margin_loss
    alpha_dropout batch_norm celu channel_shuffle constant_pad_nd dropout embedding feature_dropout group_norm
    hardshrink instance_norm layer_norm log_softmax prelu relu rms_norm selu softmax threshold
""")
OPERATORS = _ELEMENTWISE | _REDUCING | _SHAPING | _MAKING | _PRODUCTS
"""Of torch and of its tensors; those that end in "_" work in place."""

CALLS = _words("""
    AcceleratorError BoolTensor ByteTensor DoubleTensor FloatTensor Generator IntTensor LongTensor OutOfMemoryError
    Size SymBool SymFloat SymInt Tensor are_deterministic_algorithms_enabled autocast channels_last
    channels_last_3d compile contiguous_format default_generator device dtype e enable_grad finfo
    get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype get_default_device get_default_dtype
    get_deterministic_debug_mode get_device_module get_float32_matmul_precision get_num_interop_threads
    get_num_threads get_rng_state iinfo inf inference_mode initial_seed is_autocast_cache_enabled
    is_autocast_cpu_enabled is_autocast_enabled is_deterministic_algorithms_warn_only_enabled
    is_inference_mode_enabled layout load manual_seed memory_format nan newaxis
    no_grad pi preserve_format save seed set_grad_enabled frombuffer
    set_deterministic_debug_mode
    set_num_interop_threads set_num_threads set_printoptions set_rng_state strided
    typename use_deterministic_algorithms vmap
    bool int8 int16 short int32 int int64 long uint8 uint16 uint32 uint64 float32 float float64 double
    complex64 cfloat complex128 cdouble
""")
"""Of torch, beside its operators."""

OF_TENSORS = _words("""
    H T mH mT as_subclass backward bool byte char chalf contiguous copy_ cpu cuda data data_ptr device dim dim_order
    double dtype element_size expand expand_as exponential_ fill_diagonal_ float get_device grad grad_fn int
    is_contiguous is_cpu is_cuda is_leaf is_meta is_mps is_sparse is_nested is_quantized is_pinned is_xpu item itemsize
    layout log_normal_ long name names nbytes ndim ndimension nelement new new_empty new_full new_ones new_tensor
    new_zeros normal_ numpy output_nr pin_memory random_ register_hook register_post_accumulate_grad_hook repeat
    requires_grad requires_grad_ reshape_as resize retain_grad retains_grad shape short size storage_offset stride
    sum_to_size to tolist type type_as unfold uniform_ view view_as volatile xpu geometric_ cauchy_
""")
"""What tensors have beside the operators."""

LAYERS = _words("""
    AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d
    AlphaDropout AvgPool1d AvgPool2d AvgPool3d BCELoss BCEWithLogitsLoss BatchNorm1d BatchNorm2d BatchNorm3d Bilinear
    Buffer CELU ChannelShuffle CircularPad1d CircularPad2d ConstantPad1d ConstantPad2d ConstantPad3d Conv1d Conv2d
    Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d CosineEmbeddingLoss CosineSimilarity CrossEntropyLoss
    DataParallel Dropout Dropout1d Dropout2d Dropout3d ELU Embedding FeatureAlphaDropout Flatten GELU GLU
    GaussianNLLLoss GroupNorm Hardshrink Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss HuberLoss Identity
    InstanceNorm1d InstanceNorm2d InstanceNorm3d KLDivLoss L1Loss LayerNorm LeakyReLU Linear
    LocalResponseNorm LogSigmoid LogSoftmax MSELoss MarginRankingLoss Mish Module
    ModuleDict ModuleList MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss MultiheadAttention NLLLoss
    PReLU PairwiseDistance Parameter ParameterDict ParameterList PixelShuffle PixelUnshuffle PoissonNLLLoss RMSNorm
    ReLU ReLU6 ReflectionPad1d ReflectionPad2d ReplicationPad1d ReplicationPad2d SELU Sequential SiLU
    Sigmoid SmoothL1Loss SoftMarginLoss Softmax Softmax2d Softmin Softplus Softshrink Softsign SyncBatchNorm Tanh
    Tanhshrink Threshold Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder
    TransformerEncoderLayer TripletMarginLoss Unflatten Unfold Upsample ZeroPad1d ZeroPad2d
""")
"""Of torch.nn."""

FUNCTIONAL = _words("""
    Tensor adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
    alpha_dropout avg_pool1d avg_pool2d avg_pool3d batch_norm bilinear binary_cross_entropy
    binary_cross_entropy_with_logits celu channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d
    conv_transpose3d cosine_embedding_loss cosine_similarity cross_entropy dropout dropout1d dropout2d dropout3d elu
    embedding feature_alpha_dropout fold gaussian_nll_loss gelu glu group_norm gumbel_softmax hardshrink hardsigmoid
    hardswish hardtanh hinge_embedding_loss huber_loss instance_norm interpolate kl_div l1_loss layer_norm leaky_relu
    linear local_response_norm log_softmax logsigmoid margin_ranking_loss mish
    mse_loss multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss nll_loss normalize one_hot pad
    pairwise_distance pdist pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu relu6 relu_ rms_norm
    scaled_dot_product_attention selu sigmoid silu smooth_l1_loss soft_margin_loss softmax softmin softplus softshrink
    softsign tanh tanhshrink threshold triplet_margin_loss unfold upsample
""")
"""Of torch.nn.functional."""

OPTIMIZERS = _words("""
    Adadelta Adagrad Adam AdamW Adamax Muon NAdam Optimizer RAdam RMSprop SGD lr_scheduler swa_utils
""")
LINEAR_ALGEBRA = _words("""
    LinAlgError cholesky cond cross det diagonal eigh eigvalsh inv lstsq matmul matrix_exp matrix_norm matrix_power
    matrix_rank multi_dot norm pinv qr slogdet solve svd svdvals vander vecdot vector_norm
""")
DISTRIBUTIONS = _words("Bernoulli Categorical LogNormal Normal OneHotCategorical Uniform kl_divergence")
