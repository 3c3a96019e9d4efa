"""What the documents say is what the program does: commands run, outputs compared, helps and sections listed."""
import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

import run
import score

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


EXAMPLES = [found for found in doctest.DocTestFinder().find(score) if found.examples]


def test_the_scorer_has_examples():
    assert len(EXAMPLES) > 30


@pytest.mark.parametrize("found", EXAMPLES, ids=lambda found: found.name.removeprefix("score."))
def test_an_example_of_the_scorer_holds(found):
    assert doctest.DocTestRunner().run(found, clear_globs=False).failed == 0        # so that it can be run again


def test_doctests_of_the_runner_hold():
    assert doctest.testmod(run).failed == 0


def test_first_command_of_the_readme_prints_what_the_readme_shows():
    command, output = re.search(r"```sh\n(python3 score\.py facts [^\n]+)\n```\n\n```\n(.*?)\n```", README, re.S).groups()
    done = subprocess.run([sys.executable, *command.split()[1:]], cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0
    assert done.stdout.startswith(output.removesuffix("\n..."))


@pytest.mark.parametrize("document", ["README.md", "README.tr.md", "docs/recipes.md"])
def test_every_option_a_document_names_exists(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    helps = "".join(subprocess.run([sys.executable, "score.py", command, "--help"], cwd=ROOT, capture_output=True, text=True).stdout
                    for command in ("facts", "judge", "report", "compare", "agree", "cite", "check"))
    for line in re.findall(r"score\.py [^\n`]*", text):
        for option in re.findall(r"(?<!\S)--[a-z-]+", line.split("#")[0].split("run.py")[0]):
            assert option in helps, f"{option} in: {line}"


@pytest.mark.parametrize("command", ["facts", "judge", "report", "compare", "agree", "cite", "check"])
def test_every_option_of_a_command_is_in_a_document_and_the_exit_codes_in_its_help(command):
    documents = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))))
    told = subprocess.run([sys.executable, "score.py", command, "--help"], cwd=ROOT, capture_output=True, text=True).stdout
    options = set(re.findall(r"(?<!\S)--[a-z-]+", told.split("options:")[1])) - {"--help", "--output"}      # of which documents say -o
    assert [option for option in sorted(options) if not re.search(rf"{option}(?![a-z-])", documents)] == []
    assert "exit codes: 0 done" in told


def test_every_command_is_in_the_header_and_in_the_readme():
    top = subprocess.run([sys.executable, "score.py", "--help"], cwd=ROOT, capture_output=True, text=True).stdout
    commands = re.findall(r"^    ([a-z]+) ", top, re.M)
    assert sorted(commands) == ["agree", "check", "cite", "compare", "facts", "judge", "report"]
    for command in commands:
        assert f"score.py {command} " in score.__doc__
        assert f"score.py {command}" in README


def test_the_header_lists_the_sections_in_their_order():
    source = (ROOT / "score.py").read_text(encoding="utf-8")
    sections = re.findall(r"^# == (.+?) =+$", source, re.M)
    listed = score.__doc__.split('(grep -n "^# == " score.py):')[1].split("Scoring rules")[0]
    assert [line.strip() for line in listed.strip().splitlines()] == sections


def test_both_scripts_post_to_the_same_address():
    for base in ("https://a.example", "https://a.example/v1", "https://a.example/v1/", "https://a.example/api/v1", "https://a.example/v1beta/openai/",
                 "https://a.example/v1/chat/completions", "https://a.example/v1?api-version=1"):
        assert run.endpoint(base) == score.endpoint(base), base


def test_the_recipes_quote_the_files_that_are_tested():
    text = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    scripts = sorted((ROOT / "tests" / "fixtures" / "recipes").glob("*.py"))
    assert scripts
    for script in scripts:
        assert script.read_text(encoding="utf-8").strip() in text, script.name


def test_scripts_never_import_each_other():
    for name, other in (("score.py", "run"), ("run.py", "score")):
        assert not re.search(rf"^\s*(?:import|from) {other}\b", (ROOT / name).read_text(encoding="utf-8"), re.M)


def test_the_canary_is_in_the_data_and_in_the_datasheet():
    canary = re.search(r"terazi-canary [0-9a-f-]{36}", (ROOT / "DATASHEET.md").read_text(encoding="utf-8"))[0]
    for name in ("irac", "kategori"):
        lines = (ROOT / "data" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        assert all(canary in line for line in lines)
