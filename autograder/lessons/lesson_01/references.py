"""Right and fast solutions of lesson 01's timed exercises: `workbook calibrate` measures what they reach here.

They show what the course itself would do, by `course_lib` where it has the part. They are no records: a learner may
be faster, and one who is much faster gets a second look.
"""

COLLATE = """
from course_lib import collate
"""

BUCKET_BATCH_SAMPLER = """
from course_lib.data import BucketBatchSampler as LibrarySampler

def BucketBatchSampler(lengths, micro_batch_size, seed=0):
    return LibrarySampler(lengths, micro_batch_size, seed=seed)
"""

MAKE_LOADER = """
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

def make_loader(dataset, micro_batch_size, collate_fn):
    return _Ahead(dataset, micro_batch_size, collate_fn)

class _Ahead:
    # Threads and not processes: a sleep holds no lock, and nothing has to be sent from one process to another.
    def __init__(self, dataset, micro_batch_size, collate_fn):
        self.dataset, self.micro_batch_size, self.collate_fn = dataset, micro_batch_size, collate_fn
        self.threads = ThreadPoolExecutor(16)

    def __iter__(self):
        samples = self.threads.map(self.dataset.__getitem__, range(len(self.dataset)))
        while batch := list(islice(samples, self.micro_batch_size)):
            yield self.collate_fn(batch)
"""

FAST_EPOCH = """
from course_lib import BucketBatchSampler, collate, train_step

def fast_epoch(model, samples, optimizer, micro_batch_size, seed):
    model.train()
    loss_sum, num_samples = 0.0, 0
    for indices in BucketBatchSampler(samples.lengths, micro_batch_size, seed=seed):
        step = train_step(model, collate([samples[index] for index in indices]), optimizer)
        loss_sum = loss_sum + step["loss"] * len(indices)
        num_samples += len(indices)
    return {"loss": float(loss_sum) / num_samples, "num_samples": num_samples}
"""
