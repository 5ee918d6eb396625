"""Readers of torch's printed texts: from text to plain values. Nothing here imports torch.

    L['self']._modules['layers']._modules['0']                 user_expressions.py: self.layers[0]
    +- TENSOR_MATCH: check_tensor(L['x'], Tensor, ...)         guards.py: Guard("check_tensor(L['x'], ...)")
    tensor 'x' size mismatch at index 0. expected 2, actual 3  guard_failures.py: x.size()[0] was 2 and is 3
    torch_dynamo_resume_in_f_at_9                              global_names.py: ("f", 9)
    (((s53 - 1)//2)) + 1                                       size_names.py: (s53 - 1) // 2 + 1
    cpp_fused_relu_0(in_out_ptr0)                              generated.py: a Launch, with what it reads and writes
    {"dynamo_start": {...}, "frame_id": 0, ...}                events.py: a Compilation
    {"aot_forward_graph": {}, ...}                             trace_table.py: a text, of the stage Forward_graph
    two ranks that say the same                                run_ids.py: found without parsing

``met`` reads what torch met at a graph break; ``modules`` reads stacks of modules, and lookups in caches;
``run_ids`` removes the differences between two runs of one program;
``libraries`` separates files of libraries from the user's; ``wrapping`` and ``parsed`` change the text of graphs.
"""
