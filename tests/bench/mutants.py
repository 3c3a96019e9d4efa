"""Mutation testing of the scoring rules: change one operator, number or word of a rule at a time; the tests must notice.

    python tests/bench/mutants.py "Statistics" [--most 200] [--seed 1]

A mutant is made in a copy of the project, in the sections of score.py named in SECTIONS; those that survive are printed with
their line. The rules are short, so this takes some seconds a mutant: it is run by hand, not by the suite.
"""
from __future__ import annotations

import argparse
import ast
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCTESTS = "tests/test_docs.py::test_doctests_of_the_scorer_hold"
SECTIONS = {  # the rules, and the tests that speak for them
    "Turkish text": [DOCTESTS, "tests/test_text.py", "tests/test_facts.py"],
    "Statistics": [DOCTESTS, "tests/test_statistics.py"],
    "Facts (suite iik)": [DOCTESTS, "tests/test_facts.py", "tests/test_frozen.py"],
    "Judge (suite irac)": [DOCTESTS, "tests/test_replies.py", "tests/test_judge.py", "tests/test_golden.py"],
    "Judge (suite kategori)": [DOCTESTS, "tests/test_replies.py", "tests/test_judge.py"],
    "Report": [DOCTESTS, "tests/test_report.py", "tests/test_how_a_number_is_made.py", "tests/test_published.py", "tests/test_frozen.py"],
    "Compare and agree": [DOCTESTS, "tests/test_compare.py", "tests/test_frozen.py"],
}
SWAPPED: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And}
RENAMED = {"min": "max", "max": "min", "any": "all", "all": "any"}
SECONDS = 120


def mutations(node: ast.AST) -> Iterator[ast.AST]:
    """Every way to change one node of a function into another that means something else."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
        yield ast.Compare(node.left, [SWAPPED[type(node.ops[0])](), *node.ops[1:]], node.comparators)
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


def mutants(source: str, section: str) -> list[tuple[int, str, str, str]]:
    """All mutants of the functions of a section: line, what stood there, what stands there now, and the whole mutated source."""
    start = source.index(f"# == {section} =")
    after = source.find("\n# == ", start + 1)
    first, last = source.count("\n", 0, start) + 1, source.count("\n", 0, after) + 1
    lines = source.encode().splitlines(keepends=True)
    found = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef) or not first <= function.lineno <= last:
            continue
        for node in (n for statement in function.body for n in ast.walk(statement)):
            for changed in mutations(node):
                assert isinstance(node, ast.expr) and node.end_lineno and node.end_col_offset is not None
                was, now = ast.unparse(node), ast.unparse(ast.fix_missing_locations(changed))
                head = b"".join(lines[:node.lineno - 1]) + lines[node.lineno - 1][:node.col_offset]
                tail = lines[node.end_lineno - 1][node.end_col_offset:] + b"".join(lines[node.end_lineno:])
                found.append((node.lineno, was, now, (head + f"({now})".encode() + tail).decode()))
    return found


def survives(copy: Path, mutated: str, tests: list[str]) -> bool:
    """Do all tests pass on the mutated source? One that runs for ever is noticed too."""
    (copy / "score.py").write_text(mutated, encoding="utf-8")
    try:
        return not subprocess.run([sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", *tests], cwd=copy, capture_output=True, timeout=SECONDS).returncode
    except subprocess.TimeoutExpired:
        return False


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("section", nargs="+", choices=SECTIONS)
    asked.add_argument("--most", type=int, default=200, help="mutants a section, drawn at random")
    asked.add_argument("--seed", type=int, default=1)
    args = asked.parse_args()
    source = (ROOT / "score.py").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "terazi"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__"))
        for section in args.section:
            if not survives(copy, source, SECTIONS[section]):
                sys.exit(f"{section}: the tests fail on the source as it is")
            every = mutants(source, section)
            drawn = random.Random(args.seed).sample(every, min(args.most, len(every)))
            alive = [mutant for mutant in drawn if survives(copy, mutant[3], SECTIONS[section])]
            for line, was, now, _ in sorted(alive):
                print(f"score.py:{line}: {re.sub(chr(10), ' ', was)[:100]}  ->  {re.sub(chr(10), ' ', now)[:100]}", flush=True)
            print(f"{section}: {len(drawn)} of {len(every)} mutants, {len(alive)} survive", flush=True)


if __name__ == "__main__":
    main()
