"""What the commands print for the example data, frozen: a change that moves a figure, a word or a column must be meant.

To take a new output over, after reading the difference: python tests/test_frozen.py
"""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FROZEN = ROOT / "tests" / "fixtures" / "frozen"
COMMANDS = {
    "facts": "facts data/examples/sinif.csv",
    "facts_reference": "facts data/examples/sinif.csv --match reference --format md",
    "facts_explain": "facts data/examples/gemma3-270m.jsonl --explain",
    "report_irac": "report data/examples/irac_verdicts.jsonl",
    "report_irac_first": "report data/examples/irac_verdicts.jsonl --attempts 1 --format csv",
    "report_kategori": "report data/examples/kategori_verdicts.jsonl",
    "report_json": "report data/examples/kategori_verdicts.jsonl --format json",
    "compare_irac": "compare data/examples/irac_verdicts.jsonl --models pilot-kaynakli pilot-kaynaksiz --attempts 1",
    "compare_kategori": "compare data/examples/kategori_verdicts.jsonl",
    "agree": "agree data/examples/irac_verdicts.jsonl data/examples/irac_verdicts_b.jsonl",
    "cite": "cite data/examples/dilekce.txt --sources data/irac.jsonl",
    "dry_run": "judge data/examples/irac_answers.jsonl --dry-run --prices 0.1 0.4",
}


def printed(command: str) -> bytes:
    """Standard output of a command of score.py, in the project's folder."""
    done = subprocess.run([sys.executable, "score.py", *command.split()], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          env={**os.environ, "PYTHONIOENCODING": "utf-8"}, timeout=120)
    assert done.returncode == 0, command
    return done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_output_is_as_frozen(name: str) -> None:
    assert printed(COMMANDS[name]).decode("utf-8") == (FROZEN / f"{name}.txt").read_text(encoding="utf-8")


def test_rows_of_facts_give_report_the_same_table(tmp_path: Path) -> None:
    """The iik board recomputed from verdict rows has the figures that `facts` printed."""
    printed(f"facts data/examples/sinif.csv -o {tmp_path / 'rows.jsonl'}")
    table = printed(f"report {tmp_path / 'rows.jsonl'}").decode("utf-8").splitlines()
    assert table[:8] == (FROZEN / "facts.txt").read_text(encoding="utf-8").splitlines()[:8]


if __name__ == "__main__":
    FROZEN.mkdir(exist_ok=True)
    for name, command in COMMANDS.items():
        (FROZEN / f"{name}.txt").write_bytes(printed(command))
