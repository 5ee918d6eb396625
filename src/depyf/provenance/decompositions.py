"""The ATen operations that an operation becomes, where their names do not say it: forward, and for the gradient.

From graphs of ``aot_autograd``, one operation each, with Inductor's decompositions (of torch 2.13) and without. An
operation of the same name is not listed.
"""

from __future__ import annotations

#: Operations | what computes one | what computes its gradient.
_PARTS = """
# products
linear | t mm addmm permute view unsafe_view | t mm permute view sum
matmul | mm bmm expand view unsafe_view transpose permute t unsqueeze squeeze | mm bmm view transpose permute t sum
    squeeze unsqueeze
einsum | unsqueeze permute view bmm | view permute bmm squeeze
bilinear | view trilinear | view trilinear
outer | view mul | mul sum view
baddbmm | | permute bmm
conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d | convolution | convolution getitem
gru_cell | t permute addmm mm unsafe_split split getitem add sigmoid clone mul tanh sub alias | t permute mm mul neg add
    alias sub cat sum view
lstm_cell | t permute addmm mm unsafe_split split getitem add sigmoid tanh mul alias | t permute mm mul alias sub cat
    sum view sigmoid tanh detach
scaled_dot_product_attention | bmm softmax mul scalar_tensor where full expand clone view getitem alias | bmm softmax
    mul where sum sub fma clone view getitem alias
multi_head_attention_forward | t view permute transpose addmm mm unsqueeze squeeze clone select mul bmm softmax amax sub
    exp sum div alias scaled_dot_product_attention expand | t view permute transpose mm bmm alias mul sum neg fma clone
    full select_scatter add unsqueeze squeeze softmax
# activations
silu | neg exp add div sigmoid mul | sigmoid mul sub add full
gelu | mul erf add tanh pow | mul erf add exp tanh sub pow
relu | alias | alias le scalar_tensor where threshold full
relu6 hardtanh | clamp_min clamp_max hardtanh | le ge bitwise_or scalar_tensor where hardtanh
leaky_relu | gt mul where | gt mul where
elu celu selu | gt mul expm1 where elu | le mul exp where elu
softplus | exp log1p gt where | mul exp gt add div where
mish | exp log1p gt where tanh mul softplus | exp log1p gt where tanh sigmoid mul sub add
hardswish | add clamp_min clamp_max mul div | le lt div add mul where scalar_tensor
hardsigmoid | add clamp_min clamp_max div | gt lt bitwise_and mul scalar_tensor where
prelu | view gt mul where | gt mul where scalar_tensor sum view
glu | | slice sigmoid sub mul cat
log_sigmoid | full minimum abs neg exp log1p sub | lt scalar_tensor where add div mul sub
softsign | abs add div | div neg mul sign add
tanhshrink | tanh alias sub | neg alias mul sub add
sigmoid tanh | alias | alias sub mul
softmax | amax sub exp sum div alias | alias mul sum neg fma
log_softmax | amax sub exp sum log alias | alias exp sum mul sub
dropout | bernoulli rand gt mul div empty_like inductor_random inductor_seeds inductor_lookup_seed |
    convert_element_type mul clone
# norms
layer_norm | var_mean getitem add rsqrt sub mul | sub mul sum div
rms_norm | pow mean add rsqrt alias mul | mul sum view alias pow expand div add
group_norm | view var_mean getitem add rsqrt mul sub neg as_strided unsqueeze squeeze alias | alias mul view sum
    unsqueeze sub neg add
batch_norm | var_mean getitem add rsqrt sub mul squeeze unsqueeze full convert_element_type sqrt reciprocal copy | add
    rsqrt unsqueeze squeeze sum sub mul
instance_norm | view var_mean getitem add rsqrt sub mul squeeze unsqueeze repeat batch_norm mean | view unsqueeze sum
    sub mul batch_norm repeat
normalize | pow sum alias clamp_min expand div linalg_vector_norm | div neg mul sum scalar_tensor ge where alias eq add
norm | pow sum alias linalg_vector_norm | alias unsqueeze div eq scalar_tensor where mul
# pools and pictures
max_pool1d max_pool2d | unsqueeze squeeze getitem max_pool2d_with_indices low_memory_max_pool_with_offsets
    low_memory_max_pool_offsets_to_indices | max_pool2d_with_indices unsqueeze squeeze
adaptive_avg_pool1d | mean unsqueeze squeeze | expand div
adaptive_avg_pool2d | mean | expand div
interpolate | iota mul add convert_element_type unsqueeze unsafe_index sub clamp_min view clamp_max upsample_nearest2d
    upsample_bilinear2d | full index_put mul neg add
pixel_shuffle | view permute clone | view permute clone
pad | constant_pad_nd | constant_pad_nd
unfold | iota unsqueeze add constant_pad_nd index permute clone view im2col | view permute iota unsqueeze add full
    index_put constant_pad_nd
# losses
cross_entropy nll_loss | log_softmax nll_loss_forward amax sub exp sum log alias ne scalar_tensor where unsqueeze gather
    squeeze neg convert_element_type div getitem | nll_loss log_softmax div unsqueeze ne scalar_tensor where full
    scatter mul alias exp sum sub
mse_loss | sub pow mean | sub mul
l1_loss | sub abs mean | expand div sign mul neg
smooth_l1_loss | sub abs lt pow mul div where mean | sub abs mul lt div sign where
huber_loss | sub abs lt mul where mean | sub lt mul gt where
binary_cross_entropy | full sub neg log1p maximum mul log mean | sub mul clamp_min div
binary_cross_entropy_with_logits | full sub mul minimum abs neg exp log1p mean | sigmoid sub mul div
kl_div | mul eq log scalar_tensor where isnan sub mean | expand div neg mul eq log scalar_tensor where isnan le
    bitwise_and add
cosine_similarity | pow sum alias clone scalar_tensor clamp_min div mul | unsqueeze expand mul div neg sum alias eq
    scalar_tensor where add
# reductions
mean | sum div | sum div expand unsqueeze
sum | | expand unsqueeze
var | | unsqueeze mean sub mul
std | var sqrt alias | alias mul div eq scalar_tensor where mean sub unsqueeze
logsumexp | amax abs eq scalar_tensor where squeeze sub exp sum log add alias | alias unsqueeze sub exp mul
amax | alias | alias view eq sum div mul
max min | getitem | unsqueeze full scatter
cumsum | | rev cumsum
prod | | unsqueeze full slice cat cumprod rev mul
# one by one
add | | sum view
to | to_copy convert_element_type alias | to_copy convert_element_type
float type_as | to_copy convert_element_type | to_copy convert_element_type
truediv | div mul | div mul neg
rsqrt sqrt | alias | alias pow mul div
pow | mul | mul
abs | | sgn sign mul
sin | | cos mul
cos | | sin neg mul
erf | | pow neg exp mul
expm1 log1p | alias | alias add mul div
clamp | clamp_min clamp_max | scalar_tensor ge le logical_and where
lerp addcmul | sub add mul | mul
masked_fill | where scalar_tensor full | scalar_tensor where
where | scalar_tensor | scalar_tensor
# views and indices
getitem | slice select index unsqueeze | index_put slice_scatter select_scatter squeeze full
contiguous | clone |
reshape | view clone unsafe_view | view clone
flatten | view clone | view
chunk split | split slice | cat full
cat | | slice
stack | cat view unsqueeze | select unbind
expand | | sum
repeat | expand clone view | view sum
repeat_interleave | unsqueeze expand clone view | view sum squeeze
roll | iota add fmod index | iota add fmod index
flip | rev | rev
tril triu | iota unsqueeze sub le ge scalar_tensor where | iota unsqueeze sub le ge scalar_tensor where
index_add | index_put | index expand
index_select | index | full index_put
gather | | full scatter_add
embedding | | embedding_dense ge lt bitwise_and ne unsqueeze full unsafe_masked_index_put_accumulate index_put
    scalar_tensor where eq
embedding_bag | getitem |
one_hot | ge logical_not any assert_async lt unsqueeze iota eq convert_element_type |
"""
_ROWS = [row.split("|") for row in _PARTS.replace("\n    ", " ").splitlines() if "|" in row]
#: operation -> what computes it; what computes its gradient
FORWARD, BACKWARD = ({name: frozenset(row[at].split()) for row in _ROWS for name in row[0].split()} for at in (1, 2))
