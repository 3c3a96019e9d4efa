"""The reference parser: labelled texts, what is never labelled, comparing, and texts meant to break it."""
import json
import re
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import score
from score import LAWS, TYPES, Reference, checked, cite_row, cited_in, describe, line_of, meets, read_source, references

HERE = Path(__file__).parent
SHARED = HERE.parent.parent / "shared" / "citations" / "dev.jsonl"
FILES = [*sorted((HERE / "fixtures" / "citations").glob("*.jsonl")), *([SHARED] if SHARED.exists() else [])]
ROWS = [json.loads(line) for path in FILES for line in path.read_text(encoding="utf-8").splitlines()]
CORE = ("decision", "rekabet", "ozelge")


def place(text: str, surface: str, start: int) -> int:
    """Where a label stands: its next occurrence that is not cut out of a longer number."""
    pattern = (r"(?<!\d)" if surface[0].isdigit() else "") + re.escape(surface) + (r"(?!\d)" if surface[-1].isdigit() else "")
    return re.compile(pattern).search(text, start).start()


def plain_norm(kind: str, norm: dict) -> dict:
    law = norm.get("law")
    return norm | {"law": LAWS.get(law, (law,))[0] or law} if kind == "statute" else norm


def same(kind: str, one: dict, other: dict) -> bool:
    if kind == "rate":
        return abs(one["value"] - other["value"]) < 1e-4
    return plain_norm(kind, one) == plain_norm(kind, other)


def counts(rows: list[dict]) -> Counter:
    """True and false positives and misses, by type: equal type and norm, overlapping surface."""
    result: Counter = Counter()
    for row in rows:
        left, taken = references(row["text"]), {}
        for label in row["labels"]:
            kind, surface = label["type"], label["surface"]
            start = place(row["text"], surface, taken.get((kind, surface), 0))
            taken[kind, surface] = end = start + len(surface)
            found = next((r for r in left if r.type == kind and r.start < end and start < r.end and same(kind, r.norm, label["norm"])), None)
            result[kind, "hit" if found else "miss"] += 1
            if found:
                left.remove(found)
        result.update((reference.type, "extra") for reference in left)
    return result


def f1(result: Counter, kinds) -> float:
    hit, miss, extra = (sum(result[kind, what] for kind in kinds) for what in ("hit", "miss", "extra"))
    return 2 * hit / (2 * hit + miss + extra)


def test_labelled_texts():
    result = counts(ROWS)
    assert f1(result, CORE) >= 0.99
    assert f1(result, TYPES) >= 0.97
    for kind in TYPES:
        assert f1(result, [kind]) >= 0.95, kind


@pytest.mark.parametrize("text", [
    "İzmir 9. İcra Dairesi 2019/11250 esas sayılı takip dosyası", "Savcılığın 2020/45518 soruşturma numaralı evrakı",
    "2023/107744 arabuluculuk numaralı tutanak", "Noterliğin 10334 yevmiye numaralı ihtarnamesi", "2021/11 no.lu ihale",
    "A-2019/118 seri numaralı fatura", "34 ABC 123 plakalı araç", "telefon 0312 555 20 16/2017", "0001-0210-33458812/1 numaralı poliçe",
    "E-31458720-622.02-187345 sayılı yazı", "1 sayılı Cumhurbaşkanlığı Kararnamesi, 375 sayılı KHK", "60 no.lu KDV Sirküleri",
    "2016/679 sayılı AB Tüzüğü", "94/47/AT sayılı Direktif", "Şirketin 2021/7 sayılı yönetim kurulu kararı",
    "Belediye Meclisinin 2018/114 sayılı kararı", "Sözleşmenin 7.2. maddesi", "Sözleşmenin 7.3.3 ve 48/1. maddeleri", "Teknik Şartname'nin 12/3. maddesi",
    "2020/08 vergi dönemi, 2020/2021 öğretim yılı", "C. 2, S. 12, ISBN 978-975-00-0000-1", "87.03 tarife pozisyonu",
    "Çınar Mah. No: 13/4 E Blok K. 2 D. 7", "https://ornek.example/2020/1234-5678?t=12.05.2020", "E:... , K:... sayılı karar",
    "K. 20XX/… sayılı karar", "2. ayın 7. günü, 90'lı yıllar, 2021 yılı", "iki katı, yarısı, 7/24, 1/1000 ölçek", "Mart 2021, 3 Haziran",
    "bir ayrı dava, üç günah, iki yıldız", "27 bin 318 kişi, 12.500 m2 alan", "6098 sayılı Türk Borçlar Kanunu",
])
def test_never_labelled(text):
    assert references(text) == []


ALPHABET = st.text(st.sampled_from("0123456789/.-,:;()[]*_'\"\n \u00a0\u200bİıIişğEKTmHD.%₺$€B"), max_size=120)
PIECES = st.lists(st.sampled_from([row["text"] for row in ROWS] + [" ", "\n", "m. ", "sayılı ", "Esas ", "2020/1 ", "üç ", "1.", "&nbsp;", "<b>"]), max_size=8)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=120), ALPHABET, PIECES.map("".join)))
def test_spans_are_places_in_the_text(text):
    found = references(text)
    assert [r.start for r in found] == sorted(r.start for r in found)
    for reference in found:
        assert 0 <= reference.start < reference.end <= len(text)
        assert text[reference.start:reference.end] == reference.surface
        assert describe(reference)
        assert meets(reference, reference)


def test_odd_writing_is_read_without_a_crash():
    assert references("Ankara 3. As. Hukuk (Tüketici) Mah. 2020/1 E.")[0].norm["court"] == "Ankara 3. Asliye Hukuk Mahkemesi"
    assert references("TBK'nın 12. maddesinin (b) alt bendi")[0].norm["clause"] == "b"
    assert references("sevincinci mükerrer Resmî Gazete 12.05.2020")[0].norm["date"] == "2020-05-12"


@pytest.mark.parametrize("text, part, value", [
    ("BAM İstanbul 12. HD, E. 2020/1, K. 2021/2", "court", "İstanbul BAM 12. HD"),
    ("ESAS NO: 2013/15340\nKARAR NO: 2015/2744\n\nHükmün ONANMASINA, 19.2.2015 gününde oybirliğiyle karar verildi.", "date", "2015-02-19"),
    ("İİK m. 150/ı", "article", "150/ı"), ("VUK m. 5/I-b", "clause", "b"), ("GVK m. 40/V", "paragraph", "5"),
    ('Danıştay 13. Dairesi, {"esas": "2007/4872", "karar": "2010/9"}', "karar", "2010/9"), ('{"esas": "2020/15"}', "esas", "2020/15"),
    ("120/2400 arsa payı", "value", 0.05), ("(Tebliğ No: 2019/4), 2018/7 sayılı Tebliğ ve eki", "no", "2019/4"),
    ("HUMK'un 465 ve müteakip maddeleri", "article", "465"), ("bu Kanunla değişik TBK'nın 12. maddesi", "law", "TBK"), ("%30 altında pay", "value", 0.3), ("50-60 bin TL", "value", 50_000),
])
def test_forms_of_everyday(text, part, value):
    assert references(text)[0].norm[part] == value


def test_the_day_an_action_was_brought_is_no_decisions_date():
    text = "17.02.2014 tarihinde Ankara 3. İş Mahkemesinin 2014/23 E. sayılı dosyasında açılmıştır."
    assert [(r.type, r.norm.get("date")) for r in references(text)] == [("date", None), ("decision", None)]


def test_a_communique_is_read_once_and_the_next_one_too():
    text = "Tebliği (Tebliğ No: 2019/4), 2018/7 sayılı Tebliğ ve ekleri"
    assert [(r.type, r.norm["no"]) for r in references(text)] == [("communique", "2019/4"), ("communique", "2018/7")]


def norms(text: str) -> list:
    return [(reference.type, reference.norm) for reference in references(text)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_stable_under_writing(row):
    text = row["text"]
    expected = norms(text)
    assert norms(unicodedata.normalize("NFD", text)) == expected
    assert norms(unicodedata.normalize("NFC", text)) == expected
    assert norms(text.replace(" ", "\u00a0")) == expected
    assert norms(f"**{text}**") == expected
    assert norms(f"Giriş cümlesi burada biter.\n\n{text}") == expected


def only(text: str) -> Reference:
    (reference,) = references(text)
    return reference


@pytest.mark.parametrize("found, wanted, expected", [
    ("TBK m. 40/1", "6098 sayılı Kanun m. 40", True), ("TBK m. 40", "TBK m. 40/1", False), ("TBK m. 40", "TMK m. 40", False),
    ("m. 40", "TBK m. 40", True), ("TBK m. 12-15", "TBK m. 13", True), ("TBK m. 13", "TBK m. 12-15", False),
    ("HMK m. 353/1-b.1", "HMK m. 353/1-b", True), ("HMK m. 353/1-b", "HMK m. 353/1-a", False), ("TBK m. 140", "TBK m. 40", False),
    ("VUK mükerrer m. 257", "VUK m. 257", False), ("on beş gün", "15 gün", True), ("15 gün", "15 iş günü", False),
    ("690 bin TL", "690.000,00 TL", True), ("690 USD", "690 TL", False), ("yüzde yirmi", "%20", True), ("%20,5", "%20", False),
    ("Yargıtay 3. HD, E. 2020/1, K. 2021/2", "K. 2021/2", True), ("K. 2021/2", "E. 2020/1, K. 2021/2", False),
    ("E. 2021/2", "K. 2021/2", False), ("Yargıtay 3. HD, K. 2021/2", "Yargıtay 6. HD, K. 2021/2", False),
    ("21-44/652-327 sayılı karar", "21-44/652-327", True), ("1 Ocak 2020", "01.01.2020", True), ("üç ay", "%3", False),
])
def test_meets(found, wanted, expected):
    assert meets(only(found), only(wanted)) is expected


def test_cited_in_one_source_in_its_role():
    source = read_source("Yargıtay 3. HD'nin 2018/4127 E., 2019/2266 K. sayılı kararı; RK 21-44/652-327; tablo: 2020/15; sayı 38418978-125[6-14/21]-4402")
    for text, expected in (("E. 2018/4127, K. 2019/2266", True), ("E. 2019/2266, K. 2018/4127", False), ("K. 2019/226", False),
                           ("E. 2018/4127, K. 2019/9", False), ("K. 2020/15", True), ("21-44/652-327 sayılı karar", True),
                           ("21-44/652-32 sayılı karar", False), ("38418978-125[6-14/21]-4402 sayılı özelge", True)):
        assert cited_in(references(text)[0], source) is expected, text


def test_checks_of_criteria():
    text = "TBK'nın 344. maddesinin birinci fıkrası ve %25 sınırı; 1.7.2024'te biter, kırk beş gün."
    assert checked(text, {"type": "statute", "any": ["TBK m. 344"]}) and not checked(text, {"type": "statute", "any": ["TBK m. 344/2"]})
    assert checked(text, {"type": "year", "any": [2023, 2024]}) and not checked(text, {"type": "year", "any": ["2025"]})
    assert checked(text, {"type": "number", "any": ["45"]}) and not checked(text, {"type": "number", "any": ["5"]})
    with pytest.raises(ValueError):
        checked(text, {"type": "statute", "any": ["borçlar"]})


def test_rows_and_lines():
    row = cite_row({"id": "c1", "text": "Giriş\nsüre üç ay"})
    assert row == {"id": "c1", "refs": [{"type": "duration", "surface": "üç ay", "start": 11, "end": 16, "norm": {"value": 3, "unit": "ay"}}]}
    assert line_of("Giriş\nsüre üç ay", references("Giriş\nsüre üç ay")[0]) == 2


HOSTILE = ["1234567890", "////", "    ", "\n", "bir iki yedi yüz ", "onyedibin", "D A N I Ş T A Y ", "m. 1, ", "E. 2020/1 K. ", "1.", "1, ", "1/",
           "1-", "R.G. ", "tebliğ ", "madde 1 ", "kanun ", "TBK ", "(", "%", "1.1.2020 ", "12345678-125[", "B.07.1.GİB.", "birinci fıkra ",
           "Ankara 1. Asliye Hukuk Mahkemesi ", "<", "<a ", "&", "\u200b", "e\u0301", "*", "http://", "2020/1 sayılı ", "1 ve ", "m. 1 ve 1 ", "12 TL (",
           "R.G. 1.1.2020 ", "1.1.2020 E. 2020/1 ", "213 s. m. 1 ", "E: 1, K: 2 ", "E. 2020/1, K. 2020/2; ", "½", "1.000, 2 ve ", "6502 s.k. 7/a "]


@pytest.mark.parametrize("unit", HOSTILE)
def test_linear_on_hostile_texts(unit):
    """Doubling the text must not multiply the time by much more than two."""
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        start = time.process_time()                          # of this process alone: the machine may be busy
        references(text)
        return time.process_time() - start

    seconds(1000)
    small, large = min(seconds(20_000) for _ in range(3)), min(seconds(160_000) for _ in range(2))
    assert large < max(1.0, 40 * small)


def test_a_folder_without_readable_texts_is_no_source(tmp_path):
    brief = tmp_path / "brief.txt"
    brief.write_text("Yargıtay 11. HD, E. 2020/1, K. 2021/2", encoding="utf-8")
    (tmp_path / "pdfs").mkdir()
    (tmp_path / "pdfs" / "karar.pdf").write_bytes(b"%PDF")
    done = subprocess.run([sys.executable, "score.py", "cite", str(brief), "--sources", str(tmp_path / "pdfs")], cwd=HERE.parent, capture_output=True,
                          text=True, encoding="utf-8")
    assert done.returncode == 2 and "has no text to look numbers up in" in done.stderr and "NOT FOUND" not in done.stdout


def test_cite_reads_json_lines_from_standard_input():
    done = subprocess.run([sys.executable, "score.py", "cite", "-", "--json"], cwd=HERE.parent, input='{"id": 1, "text": "TBK m. 1"}\n',
                          capture_output=True, text=True, encoding="utf-8")
    assert json.loads(done.stdout)["refs"][0]["norm"]["article"] == "1"


@pytest.mark.parametrize("text, read", [
    ("Yargıtay 3. HD'nin 2020/15, 2021/22 sayılı kararlarında", ["Yargıtay 3. HD, K. 2020/15", "Yargıtay 3. HD, K. 2021/22"]),
    ("19.10.2021 tarihli ve 31633 sayılı Resmî Gazete, 1.1.2022 tarihinde yürürlüğe girer", ["RG 31633 2021-10-19", "2021-10-19", "2022-01-01"]),
    ("2020/1 E., 2020/5 Karar sayısı ile", ["E. 2020/1, K. 2020/5"]),
    ("Tebliği no: 7 gün", ["7 gün"]),
    ("TMK'nın 2, eski TBK'nın 27. maddeleri", ["TMK m. 2", "TBK m. 27"]),
    ("%10-15 gün", ["0.1", "15 gün"]),
    ("2019, 2020 ve 5.000 TL", ["5000 TL"]),
    ("6098 sayılı ile Türk Borçlar Kanunu m. 5", ["TBK m. 5"]),
    ("Hasar başvuru no: 2023/5512 ile sigorta şirketine", ["E. 2023/5512"]),
    ("19. maddesi/ f. 2", ["m. 19/2"]),
    ("hisse no 3/8", []),
    ("fkk 5 ve imk 7", []),
])
def test_what_only_an_exception_keeps_right(text, read):
    assert [score.describe(found) for found in score.references(text)] == read
