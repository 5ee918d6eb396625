"""A model inside of DistributedDataParallel: DDPOptimizer splits its graph by buckets."""

import os

import torch
import torch.distributed

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29533", RANK="0", WORLD_SIZE="1")
torch.distributed.init_process_group("gloo")
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(6)])
parallel = torch.nn.parallel.DistributedDataParallel(torch.compile(model, backend="aot_eager"), bucket_cap_mb=2)
parallel(torch.ones(2, 512)).sum().backward()
torch.distributed.destroy_process_group()
