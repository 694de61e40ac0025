"""The table of problems: every refusal has an entry of its own, and every type one meaning."""

import importlib
import pkgutil

import ordering
from app import problem
from ordering.errors import RelevoError

#: Refusals that never leave a call: they are about starting and the command line.
ELSEWHERE = {"Pooled", "NotMigrated", "UnknownSchema"}


def test_every_refusal_of_the_plan_has_a_problem() -> None:
    for module in pkgutil.iter_modules(ordering.__path__):
        importlib.import_module(f"ordering.{module.name}")
    kinds = {kind for kind in RelevoError.__subclasses__() if kind.__module__.startswith("ordering.")}
    assert len(kinds) > 20
    assert {kind.__name__ for kind in kinds if kind not in problem.KINDS} == ELSEWHERE


def test_a_type_has_one_status() -> None:
    kinds = [*problem.KINDS.values(), *problem.OF_STATUS.values(), problem.DEFECT]
    assert len({kind.word for kind in kinds}) == len({(kind.word, kind.status) for kind in kinds})
    assert all(kind.status == status for status, kind in problem.OF_STATUS.items())
