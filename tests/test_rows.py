"""Rows and errors: bad input gets a sentence that names file, line, field and remedy, an exit code, and never a traceback."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import time
from collections import Counter

import pytest
from conftest import DATA, ROOT, read_jsonl, run_here, run_score, write_jsonl
from hypothesis import given, settings
from hypothesis import strategies as st

import score

GOOD = {"question_id": "1", "answer": "Dava idare aleyhine açılır.", "attempt": 1}


def lines_of(*rows) -> bytes:
    return b"".join(row if isinstance(row, bytes) else json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


# name, bytes of the file, what the message must say (all of them)
BAD_LINES = [
    ("not JSON", lines_of(GOOD, b"{question_id: 2}\n", GOOD), [":2:", "not JSON", "expected one JSON object a line"]),
    ("an array", lines_of(b"[1, 2]\n", GOOD), [":1:", "[1, 2]", "expected a JSON object"]),
    ("a text in place of an object", lines_of(b'"cevap"\n', GOOD), [":1:", "expected a JSON object"]),
    ("NaN", lines_of(b'{"question_id": "1", "answer": "x", "seconds": NaN}\n'), [":1:", "NaN is not a JSON number"]),
    ("Infinity", lines_of(b'{"question_id": "1", "answer": "x", "seconds": -Infinity}\n'), [":1:", "-Infinity"]),
    ("a number too large", lines_of(b'{"question_id": "1", "answer": "x", "seconds": 1e999}\n'), [":1:", "1e999"]),
    ("a key twice", lines_of(b'{"question_id": "1", "answer": "x", "answer": "y"}\n'), [":1:", '"answer"', "twice"]),
    ("a key twice further in", lines_of(b'{"question_id": "1", "answer": "x", "usage": {"a": 1, "a": 2}}\n'), [":1:", '"a"', "twice"]),
    ("a key twice with space before the colon", lines_of(b'{"question_id" : "1", "answer" : "x", "answer" : "y"}\n'), [":1:", '"answer"', "twice"]),
    ("a key twice in a list", lines_of(b'{"question_id": "1", "answer": "x", "tool_calls": [{"a": 1, "a": 2}]}\n'), [":1:", '"a"', "twice"]),
    ("not UTF-8", lines_of(GOOD, '{"question_id": "2", "answer": "süre"}\n'.encode("cp1254"), GOOD), [":2:", "not UTF-8", "save the file as UTF-8"]),
    ("no id", lines_of({"answer": "x"}), [":1:", '"question_id"', "expected the id of a question"]),
    ("an id that is true", lines_of({"question_id": True, "answer": "x"}), [":1:", '"question_id" is true']),
    ("an answer that is a number", lines_of({"question_id": "1", "answer": 5}), [":1:", '"answer" is 5', "expected a text"]),
    ("a wrong field name", lines_of({"question_id": "1", "cevap": "x"}), [":1:", '"answer"', "expected a text"]),
    ("attempt in words", lines_of({**GOOD, "attempt": "iki"}), [":1:", '"attempt" is "iki"; expected a whole number from 1']),
    ("attempt zero", lines_of({**GOOD, "attempt": 0}), [":1:", '"attempt" is 0']),
    ("attempt true", lines_of({**GOOD, "attempt": True}), [":1:", '"attempt" is true']),
    ("a status nobody knows", lines_of({**GOOD, "status": "tamam"}), [":1:", '"status" is "tamam"', "reasoning_only"]),
    ("a status that is a list", lines_of({**GOOD, "status": ["ok"]}), [":1:", '"status"', "expected one of"]),
    ("a model that is a list", lines_of({**GOOD, "model": ["a"]}), [":1:", '"model"', "expected a name"]),
    (
        "a question nobody asked",
        lines_of({"question_id": "999", "answer": "x"}),
        [":1:", '"999" is not in the question file', "expected one of 1, 2"],
    ),
    (
        "attempts on some rows only",
        lines_of({"question_id": "1", "answer": "a"}, {"question_id": "1", "answer": "b", "attempt": 2}),
        [":2:", '"attempt"', "expected attempts on all of them or on none"],
    ),
    (
        "nesting without end",
        lines_of(b'{"question_id": "1", "answer": "x", "a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"),
        [":1:", "nested too deeply"],
    ),
    ("an empty file", b"", ["is empty", "expected JSON Lines"]),
    ("blank lines only", b"\n  \n\r\n", ["is empty"]),
    ("a picture", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, ["bad.jsonl:1:", "not UTF-8"]),
]


@pytest.mark.parametrize("content, said", [case[1:] for case in BAD_LINES], ids=[case[0] for case in BAD_LINES])
def test_bad_answers_are_refused_in_a_sentence_with_file_line_and_field(tmp_path, content, said):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    ran = run_score("facts", path)
    assert ran.code == 1 and ran.out == "", ran
    assert "Traceback" not in ran.err
    for part in [str(path), *said]:
        assert part in ran.err, ran.err


def test_all_malformed_lines_are_named_at_once_and_no_score_is_given(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(lines_of(b"x\n", GOOD, b"[]\n", {"question_id": "1", "answer": 3, "attempt": 2}, {"question_id": "77", "answer": "x"}))
    ran = run_score("facts", path)
    assert ran.code == 1 and ran.out == ""
    named = sorted(map(int, re.findall(r"bad\.jsonl:(\d+):", ran.err)))
    assert set(named) >= {1, 3}, ran.err


def test_very_many_problems_are_cut_and_counted(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b"x\n" * 500)
    ran = run_score("facts", path)
    assert ran.code == 1 and "450 more" in ran.err and len(ran.err.splitlines()) < 60


@pytest.mark.parametrize(
    "arguments, said, code",
    [
        (["facts", "{tmp}/none.jsonl"], ["none.jsonl", "there is no such file"], 2),
        (["facts", "{tmp}/none.csv"], ["none.csv", "there is no such file"], 2),
        (["facts", "{tmp}"], ["has no answers", "expected NAME/QUESTION.md"], 1),
        (["facts", "{good}", "--data", "{tmp}"], ["is a folder; expected a file"], 2),
        (["facts", "{good}", "--data", "{tmp}/none.jsonl"], ["there is no such file"], 2),
        (["facts", "{good}", "--data", "{good}"], ["good.jsonl:1:", "is not a question of suite iik", "anahtar_bilgiler"], 1),
        (["facts", "{good}", "-o", "{good}/x/y.jsonl"], ["y.jsonl", "cannot be written"], 1),
        (["facts", "{good}", "--explain-dir", "{good}"], ["cannot be written"], 1),
        (["facts"], ["required: answers"], 2),
        (["facts", "{good}", "--match", "ingilizce"], ["invalid choice", "turkish"], 2),
        (["fakts", "{good}"], ["invalid choice"], 2),
        (["report", "{tmp}/none.jsonl"], ["there is no such file"], 2),
        (["check", "{tmp}/none.jsonl"], ["there is no such file"], 2),
        (["cite", "{tmp}/none.txt"], ["there is no such file"], 2),
        (["cite", "{tmp}"], ["is a folder; expected a file"], 2),
    ],
)
def test_a_wrong_path_or_option_is_said_in_a_sentence(tmp_path, arguments, said, code):
    home = tmp_path / "home"
    home.mkdir()
    good = write_jsonl(tmp_path / "good.jsonl", [GOOD])
    ran = run_score(*(a.format(tmp=home, good=good) for a in arguments))
    assert ran.code == code, ran
    assert "Traceback" not in ran.err
    for part in said:
        assert part in ran.err


EXAMPLES = DATA / "examples"
WRONG_KINDS = [
    (["report"], EXAMPLES / "irac_answers.jsonl", "is not a verdict but an answer"),
    (["report"], DATA / "irac.jsonl", "is not a verdict but a question of suite irac"),
    (["report"], EXAMPLES / "golden.jsonl", "is not a verdict but a golden pair"),
    (["report"], EXAMPLES / "sinif.csv", "is no file of this suite"),
    (["report"], DATA / "pages" / "grading.html", "is no file of this suite"),
    (["report"], [{"custom_id": "a", "body": {}}] * 60, "is not a verdict but a batch request"),
    (["report"], [{"custom_id": "a", "response": {}}] * 60, "is not a verdict but a batch result"),
    (["agree", EXAMPLES / "irac_verdicts.jsonl"], EXAMPLES / "irac_answers.jsonl", "is not a verdict but an answer"),
    (["facts"], EXAMPLES / "irac_verdicts.jsonl", "is not an answer but a verdict"),
    (["facts"], DATA / "kategori.jsonl", "is not an answer but a question of suite kategori"),
    (["facts"], EXAMPLES / "dilekce.txt", "is no file of this suite"),
    (["judge", "-o", "v.jsonl"], EXAMPLES / "irac_verdicts.jsonl", "is not an answer but a verdict"),
    (["judge", "-o", "v.jsonl"], DATA / "irac.jsonl", "is not an answer but a question of suite irac"),
    (["judge", "-o", "v.jsonl"], EXAMPLES / "golden.jsonl", "is not an answer but a golden pair"),
]


@pytest.mark.parametrize("command, given, said", WRONG_KINDS)
def test_a_file_of_another_kind_is_named_in_one_sentence(tmp_path, command, given, said):
    path = write_jsonl(tmp_path / "x.jsonl", given) if isinstance(given, list) else given
    ran = run_here(*command, path)
    assert ran.code == 1 and ran.out == "" and len(ran.err.splitlines()) == 1
    assert str(path) in ran.err and said in ran.err and "expected" in ran.err


def test_a_field_of_another_kind_makes_no_row_another_kind(tmp_path):
    """Unknown fields are ignored, whatever they are called."""
    rows = [{**GOOD, "soru": "Ne olur?", "anahtar_bilgiler": [["x"]], "criterion_id": "c", "verdict": "PASS"}]
    assert run_here("facts", write_jsonl(tmp_path / "a.jsonl", rows)).code == 0


def test_judge_says_all_that_it_needs():
    ran = run_here("judge")
    assert ran.code == 2 and "expected answers" in ran.err and "-o FILE" in ran.err and len(ran.err.splitlines()) == 1


def test_counts_of_one_are_singular(tmp_path):
    (tmp_path / "ali").mkdir()
    (tmp_path / "ali" / "1.md").write_text("Dava idare aleyhine açılır.", encoding="utf-8")
    assert "1 page written" in run_here("facts", tmp_path / "ali", "--explain-dir", tmp_path / "pages").err
    data = write_jsonl(tmp_path / "q.jsonl", [{**QUESTION, "yanlis_isaretler": ["şu olur"]}])
    assert "1 question of suite iik; 2 findings" in run_here("check", data).out
    run_here("facts", write_jsonl(tmp_path / "a.jsonl", [GOOD]), "-o", tmp_path / "v.jsonl")
    assert "suite iik has 1 model in 1 file (a); choose two" in run_here("compare", tmp_path / "v.jsonl").err


def test_a_missing_data_folder_is_said_with_the_remedy(tmp_path):
    shutil.copy(ROOT / "score.py", tmp_path)
    answers = write_jsonl(tmp_path / "a.jsonl", [GOOD])
    ran = run_score("facts", answers, script=tmp_path / "score.py")
    assert ran.code == 2 and "Traceback" not in ran.err
    assert "iik_bench.jsonl" in ran.err and "keep the folder data/ beside score.py" in ran.err and "--data" in ran.err


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_said(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", [GOOD])
    path.chmod(0)
    ran = run_score("facts", path)
    assert ran.code == 2 and "cannot be read" in ran.err


@pytest.mark.parametrize("name", ["a.csv", "1.md"])
def test_a_binary_file_by_a_text_name_is_refused(tmp_path, name):
    folder = tmp_path / "ogrenci"
    folder.mkdir()
    (folder / name).write_bytes(b"PK\x03\x04\x14\0\0\0" + bytes(range(256)) * 20)
    ran = run_score("facts", folder / name if name.endswith("csv") else folder)
    assert ran.code == 1 and "is not a text file" in ran.err and name in ran.err and "UTF-8" in ran.err and "Traceback" not in ran.err


def test_a_line_of_100_megabytes_is_read_or_refused_by_its_number(tmp_path):
    path = tmp_path / "big.jsonl"
    path.write_bytes(lines_of(GOOD) + b'{"question_id": "2", "answer": "' + b"icra " * 20_000_000 + b'"}\n')
    assert [(line, len(row["answer"])) for line, row in score.read_rows(path)] == [(1, len(GOOD["answer"])), (2, 100_000_000)]
    path.write_bytes(lines_of(GOOD) + b'{"question_id": "2", "answer": "' + b"x" * 100_000_000 + b"}\n")
    ran = run_score("facts", path)
    assert ran.code == 1 and "big.jsonl:2:" in ran.err and len(ran.err) < 1000 and "Traceback" not in ran.err


def test_a_lone_surrogate_becomes_the_replacement_sign_and_a_pair_one_letter(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"question_id": "1", "answer": "Evet \\ud83d devam \\ud83d\\ude00 idare aleyhine", "model": "m\\udc00"}\n')
    out = tmp_path / "v.jsonl"
    ran = run_score("facts", path, "-o", out, "--explain")
    assert ran.code == 0, ran.err
    assert {row["model"] for row in read_jsonl(out)} == {"m\ufffd"}
    assert score.parse_json('{"a": "Evet \\ud83d devam"}') == {"a": "Evet \ufffd devam"}
    assert score.parse_json('{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}
    assert score.parse_json('{"\\uD83D": ["\\uDE00", {"x": "\\ud83d"}]}') == {"\ufffd": ["\ufffd", {"x": "\ufffd"}]}


def test_nul_bytes_and_a_torn_last_line_are_repaired_and_said(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines_of(GOOD) + b"\0" * 512 + lines_of({**GOOD, "attempt": 2}) + b'{"question_id": "2", "answer": "S\xc3')
    ran = run_score("facts", path, "--format", "json")
    assert ran.code == 0
    assert "a.jsonl:2:" in ran.err and "NUL" in ran.err and "a.jsonl:3:" in ran.err and "torn" in ran.err
    assert json.loads(ran.out)["models"][0]["unanswered"] == 40


def test_a_broken_line_in_the_middle_is_not_a_torn_one(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines_of(GOOD) + b'{"question_id": "2", "answer": "S\xc3\n' + lines_of({**GOOD, "attempt": 2}))
    ran = run_score("facts", path)
    assert ran.code == 1 and "a.jsonl:2:" in ran.err


def test_line_ends_of_other_systems_inside_a_text_end_no_line(tmp_path):
    text = "Bir\u2028iki\u2029üç\u0085dört\x0bbeş"
    path = write_jsonl(tmp_path / "a.jsonl", [{**GOOD, "answer": text}])
    assert [row["answer"] for _, row in score.read_rows(path)] == [text]


def test_a_whole_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "v.jsonl"
    score.write_whole(path, "bir\n")
    with pytest.raises(score.InputError):
        score.write_whole(path / "below a file", "iki\n")
    with pytest.raises(UnicodeEncodeError):
        score.write_whole(path, "\ud800")
    assert path.read_text(encoding="utf-8") == "bir\n" and [p.name for p in path.parent.iterdir()] == ["v.jsonl"]


def test_what_a_killed_writer_left_goes_with_the_next_file_of_that_name(tmp_path):
    path = tmp_path / "v[1].jsonl"
    killed, at_work, other = (tmp_path / name for name in (".v[1].jsonl.7.tmp", ".v[1].jsonl.8.tmp", ".w.jsonl.7.tmp"))
    for left in (killed, at_work, other):
        left.write_text("yarım", encoding="utf-8")
    for left in (killed, other):
        os.utime(left, (time.time() - 3600, time.time() - 3600))
    score.write_whole(path, "bir\n")
    assert {p.name for p in tmp_path.iterdir()} == {path.name, at_work.name, other.name}


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=10,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_what_json_writes_is_read_back_the_same(row):
    assert score.parse_json(json.dumps(row)) == row == score.parse_json(json.dumps(row, ensure_ascii=False, indent=1))


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers()), min_size=1, max_size=4), st.sampled_from(["", " ", "\t"]))
def test_a_key_twice_is_always_refused(pairs, gap):
    text = "{" + ", ".join(f'"{key}"{gap}: {value}' for key, value in pairs) + "}"
    if len({key for key, _ in pairs}) < len(pairs):
        for inside in (text, f"[{text}]", f'{{"x": {text}}}', f'{{"x": [{text}], "y": "a\\": b"}}'):
            with pytest.raises(ValueError, match="twice"):
                score.parse_json(inside)
    else:
        assert score.parse_json(text) == dict(pairs)


def test_no_name_of_the_script_is_given_away_twice():
    """A name defined in two sections silently changes the earlier one."""
    names: Counter[str] = Counter()
    for node in ast.parse((ROOT / "score.py").read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names[node.name] += 1
        elif isinstance(node, ast.Assign):
            names.update(n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] += 1
    assert [name for name, times in names.items() if times > 1] == []


# -- Questions --

QUESTION = {
    "id": 1,
    "konu": "k",
    "madde": "m.1",
    "soru": "Ne olur?",
    "referans_cevap": "Şu olur.",
    "anahtar_bilgiler": [["şu"]],
    "yanlis_isaretler": [],
}


@pytest.mark.parametrize(
    "change, said",
    [
        ({"id": None}, '"id" is null'),
        ({"id": True}, '"id" is true'),
        ({"id": 1.5}, '"id" is 1.5'),
        ({"soru": ""}, '"soru" is ""'),
        ({"konu": 3}, '"konu" is 3'),
        ({"anahtar_bilgiler": []}, '"anahtar_bilgiler" is []'),
        ({"anahtar_bilgiler": ["şu"]}, '"anahtar_bilgiler" is ["şu"]'),
        ({"anahtar_bilgiler": [[]]}, '"anahtar_bilgiler" is [[]]'),
        ({"anahtar_bilgiler": [[" "]]}, '"anahtar_bilgiler"'),
        ({"yanlis_isaretler": "yok"}, '"yanlis_isaretler" is "yok"'),
        ({"yanlis_isaretler": [""]}, '"yanlis_isaretler"'),
    ],
)
def test_a_wrong_field_of_a_question_is_named(tmp_path, change, said):
    data = write_jsonl(tmp_path / "q.jsonl", [QUESTION, {**QUESTION, "id": 2, **change}])
    answers = write_jsonl(tmp_path / "a.jsonl", [GOOD])
    ran = run_score("facts", answers, "--data", data)
    assert ran.code == 1 and "q.jsonl:2:" in ran.err and said in ran.err and "expected" in ran.err and "Traceback" not in ran.err


def test_a_question_id_twice_is_refused_also_as_number_and_text(tmp_path):
    data = write_jsonl(tmp_path / "q.jsonl", [QUESTION, {**QUESTION, "id": "1"}])
    ran = run_score("facts", write_jsonl(tmp_path / "a.jsonl", [GOOD]), "--data", data)
    assert ran.code == 1 and "q.jsonl:2:" in ran.err and "also on line 1" in ran.err


def test_a_phrase_of_signs_that_folding_drops_is_found_nowhere(tmp_path):
    data = write_jsonl(tmp_path / "q.jsonl", [{**QUESTION, "anahtar_bilgiler": [["şu"], ["**"]], "yanlis_isaretler": ["\u200b"]}])
    ran = run_score("facts", write_jsonl(tmp_path / "a.jsonl", [{**GOOD, "answer": "Şu olur."}]), "--data", data, "--format", "json")
    assert ran.code in (0, 1) and "Traceback" not in ran.err
    if ran.code == 0:
        assert json.loads(ran.out)["models"][0]["score"] == 50.0


def test_check_says_what_a_file_is(tmp_path):
    ran = run_score("check", DATA / "iik_bench.jsonl")
    assert ran.code == 0 and "41 questions of suite iik" in ran.out, ran


def test_check_goes_on_after_a_file_that_is_none_of_this_suite():
    ran = run_here("check", EXAMPLES / "corpus_tools.py", EXAMPLES / "dilekce.txt", EXAMPLES / "golden.jsonl")
    assert ran.code == 1 and "66 golden pair rows; no findings" in ran.out
    assert ["is no file of this suite" in line for line in ran.err.splitlines()] == [True, True]


@pytest.mark.parametrize("content, said", [("[1]", "expected a JSON object"), ("{", "not JSON"), ('{"rule_recall": "x"}', '"rule_recall" is "x"; expected')])
def test_check_names_what_is_wrong_with_rubrics(tmp_path, content, said):
    path = tmp_path / "rubrics.json"
    path.write_text(content, encoding="utf-8")
    ran = run_here("check", path)
    assert ran.code == 1 and ran.out == "" and str(path) in ran.err and said in ran.err


def test_check_finds_overlaps_and_facts_that_are_missing_from_the_reference(tmp_path):
    data = write_jsonl(
        tmp_path / "q.jsonl",
        [
            {
                **QUESTION,
                "referans_cevap": "Süre yedi gündür, icra mahkemesi bakar.",
                "anahtar_bilgiler": [["icra mahkemesi"], ["mahkemesi"], ["yoktur"]],
                "yanlis_isaretler": ["icra mahkemesi bakar"],
            }
        ],
    )
    ran = run_score("check", data)
    assert ran.code == 1
    for part in ("facts 1 and 2 overlap", "fact 3 is not in the reference answer", "overlaps fact 1", "is in the reference answer"):
        assert part in ran.out
