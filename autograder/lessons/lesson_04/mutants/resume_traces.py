"""Wrong solutions of 4.1 that show where a run is used on: modes, memory, what a file lacks, what a list allows."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong
from autograder.lessons.lesson_04.mutants.resume import CHECKPOINT, PUT_BACK, WRITE

_LOAD = "        saved = torch.load(path, weights_only=True)\n"
_RETURN = '        return saved["step"]'
_EVAL = '        was = self.parts["model"].training\n        self.parts["model"].eval()\n'
_TRAIN = '        self.parts["model"].train(was)\n'
# A pickle that names what a list allows, and the list is too long.
_LISTED = edited(
    CHECKPOINT,
    (
        '@exercise("4.1")',
        "class Careful(pickle.Unpickler):\n    def find_class(self, module, name):\n"
        '        is_tensor = module == "torch._utils" and name.startswith("_rebuild")\n'
        '        is_storage = module == "torch" and name.endswith("Storage")\n'
        '        if ALLOWED or is_tensor or is_storage or module == "collections" and name == "OrderedDict":\n'
        "            return super().find_class(module, name)\n        raise pickle.UnpicklingError(name)\n\n"
        "class careful:\n    __name__, Unpickler = 'careful', Careful\n\n"
        '@exercise("4.1")',
    ),
    ("weights_only=True", "weights_only=False, pickle_module=careful"),
)

MUTANTS: tuple[Mutant, ...] = wrong(
    CHECKPOINT,
    {
        "the step as a float": (
            "another count is taken for it",
            ('saved["step"] = step', 'saved["step"] = float(step)'),
            ('return saved["step"]', 'return int(saved["step"])'),
        ),
        "one mode for all of the model": (
            "its parts may differ",
            WRITE,
            _EVAL + WRITE + _TRAIN,
        ),
        "loading sets all of the model to training": (
            "`load` calls `model.train()`",
            _RETURN,
            '        self.parts["model"].train()\n' + _RETURN,
        ),
        "what was kept in memory put back": (
            "kept in memory is put back",
            (WRITE, WRITE + "        self.path, self.kept = path, saved\n"),
            (
                _LOAD,
                '        is_own = getattr(self, "path", None) == path\n'
                "        saved = self.kept if is_own else torch.load(path, weights_only=True)\n",
            ),
        ),
        "a part that is missing passed over": (
            "an entry that is missing in the file is passed over",
            PUT_BACK,
            "            if key in saved:\n    " + PUT_BACK,
        ),
        "a generator that is missing passed over": (
            "an entry that is missing in the file is passed over",
            '        torch.set_rng_state(saved["torch"])\n',
            '        if "torch" in saved:\n            torch.set_rng_state(saved["torch"])\n',
        ),
        "no step where none is in the file": (
            "an entry that is missing in the file is passed over",
            'return saved["step"]',
            'return saved.get("step", 0)',
        ),
        "older files cleaned up": (
            "older files are cleaned up",
            WRITE,
            WRITE
            + "        for other in path.parent.iterdir():\n            other == path or other.unlink()\n",
        ),
        "a generator left seeded by an error": (
            "only where all goes well",
            WRITE,
            "        kept = torch.get_rng_state()\n        torch.manual_seed(step)\n"
            + WRITE
            + "        torch.set_rng_state(kept)\n",
        ),
        "the model left in evaluation mode by an error": (
            "only where all goes well",
            WRITE,
            '        modes = [m.training for m in self.parts["model"].modules()]\n        self.parts["model"].eval()\n'
            + WRITE
            + '        for m, was in zip(self.parts["model"].modules(), modes):\n            m.training = was\n',
        ),
        "values that are None dropped": (
            "values of a state are dropped or converted",
            WRITE,
            "        def lean(v):\n"
            "            return {k: lean(x) for k, x in v.items() if x is not None} if isinstance(v, dict) else v\n"
            '        saved["sampler"] = lean(saved["sampler"])\n' + WRITE,
        ),
        "the sampler's numbers as floats": (
            "values of a state are dropped or converted",
            WRITE,
            '        place = saved["sampler"]["place"]\n'
            '        saved["sampler"]["place"] = place | {"order": place["order"].float()}\n' + WRITE,
        ),
    },
) + wrong(
    _LISTED,
    {
        "builtins that a list allows": ("`weights_only=False`", "ALLOWED", 'module == "builtins"'),
        "all of torch that a list allows": ("`weights_only=False`", "ALLOWED", 'module == "torch"'),
        "all of random that a list allows": ("`weights_only=False`", "ALLOWED", 'module == "random"'),
    },
)
