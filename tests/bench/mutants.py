"""Mutation testing of the scoring rules: change one operator, number or word of a rule at a time; the tests must notice.

    python tests/bench/mutants.py "Statistics" "Compare and agree" [--most 200] [--seed 1]

The tests of a section run once, which shows the functions each of them calls and how long it works. Then each mutant gets a
fork of that process: the code of one function is exchanged, and the tests that call it run, quick ones first, until one fails.
Commands in processes of their own find the mutant in the copy's score.py. Survivors are printed as line, function and change.
What is left out, because it decides no score, is in WORDING; docs/mutation.md has the results.
"""
from __future__ import annotations
import __future__

import argparse
import ast
import inspect
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCTESTS = "tests/test_docs.py::test_an_example_of_the_scorer_holds"
SECTIONS = {  # the rules, and the tests that speak for them
    "Turkish text": [DOCTESTS, "tests/test_text.py", "tests/test_facts.py"],
    "Statistics": [DOCTESTS, "tests/test_statistics.py", "tests/test_published.py"],
    "Facts (suite iik)": [DOCTESTS, "tests/test_facts.py", "tests/test_frozen.py"],
    "Judge (suite irac)": [DOCTESTS, "tests/test_replies.py", "tests/test_judge.py", "tests/test_golden.py"],
    "Judge (suite kategori)": [DOCTESTS, "tests/test_replies.py", "tests/test_judge.py", "tests/test_how_a_number_is_made.py", "tests/test_report.py"],
    "Report": [DOCTESTS, "tests/test_report.py", "tests/test_how_a_number_is_made.py", "tests/test_published.py", "tests/test_frozen.py"],
    "Compare and agree": [DOCTESTS, "tests/test_compare.py", "tests/test_published.py", "tests/test_frozen.py"],
}
# Functions and calls that word, lay out or show what others have decided. f-strings and `raise` are left out too, and the `strict`
# of zip, which guards against a mistake in the code.
WORDING = {"explain", "explanation", "_place", "facts_board", "paired_with_first", "rows_notes", "run_notes", "standing_notes",
           "attempt_notes", "irac_board", "cost_notes", "kategori_board", "grader_notes", "page_question", "page_rows", "fill_page",
           "listed", "said", "fixed", "figure", "model_table", "Table", "signature", "shown", "_sample", "p_value"}
SWAPPED: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And}
RENAMED = {"min": "max", "max": "min", "any": "all", "all": "any"}
LONGEST = "no_value_in_no_field"       # runs commands two thousand times; a minute while it is watched
SLOW = 2                    # seconds: longer tests (thousands of random texts) are left out, so a rule must be held by a quick one too


class Mutant(NamedTuple):
    """One change of a top-level function or class of score.py."""
    owner: str
    line: int
    change: str
    statement: str          # the owner's mutated source, after as many empty lines as stand above it
    source: str             # all of it


def mutations(node: ast.AST) -> Iterator[ast.expr]:
    """Every way to change one node of a function into another that means something else."""
    if isinstance(node, ast.Compare):
        for n, op in enumerate(node.ops):
            if type(op) in SWAPPED:
                yield ast.Compare(node.left, [*node.ops[:n], SWAPPED[type(op)](), *node.ops[n + 1:]], node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPPED:
        yield ast.BinOp(node.left, SWAPPED[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(SWAPPED[type(node.op)](), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.Name) and node.id in RENAMED:
        yield ast.Name(RENAMED[node.id], node.ctx)


def rules_in(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes under one, without what only words or shows a result, and without signatures and annotations."""
    called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
    if isinstance(node, (ast.JoinedStr, ast.Raise)) or called in WORDING or (isinstance(node, ast.FunctionDef) and node.name in WORDING):
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return
    yield node
    inside = node.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else [node.value] if isinstance(node, ast.AnnAssign) else ast.iter_child_nodes(node)
    for child in inside:
        if child is not None and not (isinstance(node, ast.ClassDef) and not isinstance(child, ast.FunctionDef)):
            yield from rules_in(child)


def mutants(source: str, section: str) -> list[Mutant]:
    """All mutants of the functions of a section, in their order."""
    start = source.index(f"# == {section} =")
    after = source.find("\n# == ", start + 1)
    first, last = source.count("\n", 0, start) + 1, source.count("\n", 0, after) + 1
    lines = source.encode().splitlines(keepends=True)
    found = []
    for owner in ast.parse(source).body:
        if not isinstance(owner, (ast.FunctionDef, ast.ClassDef)) or not first <= owner.lineno <= last:
            continue
        top, bottom = min([owner.lineno, *[d.lineno for d in owner.decorator_list]]), owner.end_lineno or 0
        for node in rules_in(owner):
            for changed in mutations(node):
                assert isinstance(node, ast.expr) and node.end_lineno and node.end_col_offset is not None
                was, now = ast.unparse(node), ast.unparse(ast.fix_missing_locations(changed))
                head = b"".join(lines[top - 1:node.lineno - 1]) + lines[node.lineno - 1][:node.col_offset]
                tail = lines[node.end_lineno - 1][node.end_col_offset:] + b"".join(lines[node.end_lineno:bottom])
                body = (head + f"({now})".encode() + tail).decode()
                whole = b"".join(lines[:top - 1]).decode() + body + b"".join(lines[bottom:]).decode()
                found.append(Mutant(owner.name, node.lineno, f"{' '.join(was.split())[:110]}  ->  {' '.join(now.split())[:110]}",
                                    "\n" * (top - 1) + body, whole))
    return found


def exchange(module: Any, mutant: Mutant) -> None:
    """Give the functions of a loaded module the mutant's code; whoever holds the function has the new code too."""
    names = dict(vars(module))
    code = compile(mutant.statement, module.__file__, "exec", __future__.annotations.compiler_flag, dont_inherit=True)
    exec(code, names)

    def take(old: Any, new: Any) -> None:
        if isinstance(old, type):
            for name, member in vars(new).items():
                take(vars(old).get(name), member)
        elif isinstance(old, property):
            take(old.fget, new.fget)
        elif callable(old) and hasattr(inspect.unwrap(old), "__code__"):
            inspect.unwrap(old).__code__ = inspect.unwrap(new).__code__
    take(vars(module)[mutant.owner], names[mutant.owner])
    forget(module)


def forget(module: Any) -> None:
    """Empty a module's caches: what is remembered is not called."""
    for value in vars(module).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()


def commands_here(session: pytest.Session) -> None:
    """Commands that tests start in processes of their own run in this one where they can: ten times as fast."""
    from conftest import Ran, run_here, run_score

    def run(*arguments: object, **how: Any) -> Ran:
        return run_score(*arguments, **how) if how else run_here(*arguments)
    for module in {item.module for item in session.items if isinstance(item, pytest.Function)}:
        if getattr(module, "run_score", None) is run_score:
            module.run_score = run


class Campaign:
    """A pytest plugin that, instead of running the tests once, runs them on each mutant."""

    def __init__(self, source: str, chosen: list[Mutant]) -> None:
        self.source, self.chosen = source, chosen
        self.alive: list[Mutant] = []

    def pytest_collection(self) -> None:
        """A failing example need not be made small."""
        from hypothesis import Phase, settings
        settings.register_profile("mutants", settings(), phases=(Phase.explicit, Phase.generate))
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Failed("the tests can't be collected")
        commands_here(session)
        calls, seconds = self.first_run(session)
        quick = sorted((item for item in session.items if seconds[item.nodeid] <= SLOW), key=lambda item: seconds[item.nodeid])
        if not self.survives(self.chosen[0]._replace(statement=self.source, source=self.source), quick, 600):
            pytest.exit("the tests fail in a fork on the source as it is", 1)
        for n, mutant in enumerate(self.chosen, 1):
            mine = [item for item in quick if mutant.owner in calls[item.nodeid]]
            if self.survives(mutant, mine, 30 + 5 * sum(seconds[item.nodeid] for item in mine)):
                self.alive.append(mutant)
                print(f"score.py:{mutant.line}: {mutant.owner}: {mutant.change}", flush=True)
            if sys.stderr.isatty():
                print(f"\r{n}/{len(self.chosen)}", end="", file=sys.stderr)
        return True

    def first_run(self, session: pytest.Session) -> tuple[dict[str, set[str]], dict[str, float]]:
        """Of each test the functions and classes of score.py that it calls, and its seconds of work. A test that starts a process may call all."""
        import score
        tree = ast.parse(self.source)
        owner_at = {line: node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))
                    for line in range(min([node.lineno, *[d.lineno for d in node.decorator_list]]), (node.end_lineno or 0) + 1)}
        everything, seen = set(owner_at.values()), set[str]()

        def watch(frame: Any, event: str, argument: object) -> None:
            if frame.f_code.co_filename == score.__file__:
                seen.add(owner_at.get(frame.f_code.co_firstlineno, ""))

        def started(event: str, arguments: object) -> None:
            if event == "subprocess.Popen":
                seen.update(everything)
        sys.addaudithook(started)
        calls, seconds = {}, {}
        for item in session.items:
            seen.clear()
            forget(score)
            begun = sum(os.times()[:4])
            threading.settrace(watch)
            sys.settrace(watch)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            sys.settrace(None)
            threading.settrace(None)        # type: ignore[arg-type]
            calls[item.nodeid], seconds[item.nodeid] = set(seen), sum(os.times()[:4]) - begun
            if session.testsfailed:                         # most likely one that measures time, which watching takes
                print(f"left out, fails while it is watched: {item.nodeid}", flush=True)
                session.testsfailed, session.shouldfail, seconds[item.nodeid] = 0, False, math.inf
        return calls, seconds

    def survives(self, mutant: Mutant, tests: list[pytest.Item], limit: float) -> bool:
        """Do all these tests pass on the mutant? One that runs for ever is noticed too."""
        import score
        (ROOT_OF_COPY / "score.py").write_text(mutant.source, encoding="utf-8")
        child = os.fork()
        if child:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(limit))
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            exchange(score, mutant)
            for item in tests:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                if item.session.testsfailed:
                    os._exit(1)
        except BaseException:
            os._exit(2)
        os._exit(0)


ROOT_OF_COPY = Path()


def main() -> None:
    global ROOT_OF_COPY
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("section", nargs="+", choices=SECTIONS)
    asked.add_argument("--most", type=int, default=10_000, help="mutants a section, drawn at random")
    asked.add_argument("--seed", type=int, default=1)
    args = asked.parse_args()
    source = (ROOT / "score.py").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        ROOT_OF_COPY = Path(folder) / "terazi"
        shutil.copytree(ROOT, ROOT_OF_COPY, ignore=shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__"))
        os.chdir(ROOT_OF_COPY)
        for section in args.section:
            child = os.fork()                               # a section's modules are its own
            if not child:
                (ROOT_OF_COPY / "score.py").write_text(source, encoding="utf-8")
                every = mutants(source, section)
                chosen = sorted(random.Random(args.seed).sample(every, min(args.most, len(every))), key=lambda m: m.line)
                campaign = Campaign(source, chosen)
                code = pytest.main(["-s", "-n", "0", "-p", "no:cacheprovider", "-p", "no:terminal", "-o", "addopts=", "-o", "tmp_path_retention_policy=none",
                                    "-k", f"not {LONGEST}", "--basetemp", f"{folder}/tests",       # another run's pytest would clear the common one
                                    *SECTIONS[section]], plugins=[campaign])
                if not code:
                    print(f"{section}: {len(chosen)} of {len(every)} mutants, {len(chosen) - len(campaign.alive)} killed, {len(campaign.alive)} survive", flush=True)
                os._exit(int(code))
            if os.waitpid(child, 0)[1]:
                sys.exit(f"{section}: did not run to its end")


if __name__ == "__main__":
    main()
