"""Turkish text: folding, numbers by value, phrase match and denial, held against a table written from the rules beforehand."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

import pytest
from conftest import FIXTURES, read_jsonl
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import score

TRAPS = read_jsonl(FIXTURES / "matching_traps.jsonl")


def found(wanted: str, text: str) -> bool:
    return any(score.hits(score.phrase(wanted), score.fold(text)))


def counted(marker: str, text: str) -> str:
    """What facts makes of a false marker: asserted, denied or absent."""
    sheet = score.fact_sheet({"anahtar_bilgiler": [["x"]], "yanlis_isaretler": [marker]})
    result = score.match_turkish(sheet, score.fold(text))
    return "asserted" if result.asserted else "denied" if result.denied else "absent"


def test_the_table_of_traps_is_long_enough_and_has_both_outcomes_of_each_kind():
    assert len(TRAPS) >= 70
    for kind in {t["kind"] for t in TRAPS}:
        assert len({t.get("found", t.get("counted")) for t in TRAPS if t["kind"] == kind}) >= 2, kind


@pytest.mark.parametrize("trap", TRAPS, ids=lambda t: f"{t['id']}-{t['kind']}")
def test_matching_trap(trap):
    if "marker" in trap:
        assert counted(trap["marker"], trap["text"]) == trap["counted"]
    else:
        assert found(trap["phrase"], trap["text"]) is trap["found"]


# -- A slow reader of the same rules, written from them alone: whole text into words and values, nothing found by shortcuts. --

ONES = ["sıfır", "bir", "iki", "üç", "dört", "beş", "altı", "yedi", "sekiz", "dokuz"]
TENS = ["on", "yirmi", "otuz", "kırk", "elli", "altmış", "yetmiş", "seksen", "doksan"]


def say_number(n: int) -> str:
    """1 to 9,999 in Turkish words."""
    words = []
    if n >= 1000:
        words += ([ONES[n // 1000]] if n >= 2000 else []) + ["bin"]
    if n % 1000 >= 100:
        words += ([ONES[n % 1000 // 100]] if n % 1000 >= 200 else []) + ["yüz"]
    if n % 100 >= 10:
        words.append(TENS[n % 100 // 10 - 1])
    if n % 10:
        words.append(ONES[n % 10])
    return " ".join(words)


def plain(text: str) -> str:
    """Lower case, no marks, ASCII: only what the texts generated here need."""
    text = text.replace("İ", "i").replace("I", "i").replace("ı", "i").lower()
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c) and c not in "'’")


SPOKEN = {plain(say_number(n)): n for n in range(1, 10_000)}
GLUED = {words.replace(" ", ""): words.split() for words in SPOKEN}


def items(text: str) -> list[tuple[str, object]]:
    """Words, signs and numbers of a text in order; the longest run of words that says one number is that number."""
    tokens = [t for token in re.findall(r"\d+(?:[.,]\d+)*|[^\W\d_]+|[^\w\s]", plain(text)) for t in GLUED.get(token, [token])]
    out: list[tuple[str, object]] = []
    at = 0
    while at < len(tokens):
        for size in range(7, 0, -1):
            words = " ".join(tokens[at : at + size])
            if words in SPOKEN and at + size <= len(tokens):
                out.append(("number", Fraction(SPOKEN[words])))
                at += size
                break
        else:
            token = tokens[at]
            if token[0].isdigit():
                out.append(("number", Fraction(token.replace(".", "").replace(",", "."))))
            else:
                out.append(("word" if token.isalpha() else "sign", token))
            at += 1
    return one_form(out)


def one_form(read: list[tuple[str, object]]) -> list[tuple[str, object]]:
    """ "üç (3)" is one number; "yüzde 20" and "%20" are one rate; lira, Türk lirası, TL and ₺ one currency."""
    out: list[tuple[str, object]] = []
    for item in read:
        out.append(item)
        if (
            [kind for kind, _ in out[-4:]] == ["number", "sign", "number", "sign"]
            and out[-3][1] == "("
            and out[-1][1] == ")"
            and out[-4][1] == out[-2][1]
        ):
            del out[-3:]
        if len(out) > 1 and out[-1][0] == "number" and out[-2] in (("sign", "%"), ("word", "yuzde")):
            out[-2:] = [("rate", out[-1][1])]
    return out


INFLECTED = {
    "gun": ["gun", "gunde", "gunden", "gundur", "gunluk", "gune", "gunun", "gunu", "gunler"],
    "ay": ["ay", "ayda", "aydan", "aydir", "aylik", "ayi", "ayin", "aya"],
    "yil": ["yil", "yilda", "yildan", "yildir", "yillik", "yili", "yilin", "yila"],
}


def slowly_found(wanted: str, text: str) -> bool:
    """Is the phrase somewhere in the whole text, by words and values?"""
    needle, hay = items(wanted), items(text)
    for at in range(len(hay) - len(needle) + 1):
        *head, (kind, last) = needle
        other_kind, other = hay[at + len(head)]
        if (
            hay[at : at + len(head)] == head
            and kind == other_kind
            and (other == last if kind != "word" else other in INFLECTED[last] if last in INFLECTED else str(other).startswith(str(last)))
        ):
            return True
    return False


numbers = st.one_of(st.integers(1, 40), st.sampled_from([50, 60, 100, 101, 110, 120, 365, 999]))
spellings = st.sampled_from(
    [
        say_number,
        lambda n: say_number(n).replace(" ", ""),
        lambda n: say_number(n).upper(),
        str,
        lambda n: f"{n} ({say_number(n)})",
        lambda n: f"{say_number(n)} ({n})",
    ]
)
said = st.builds(lambda n, how: how(n), numbers, spellings)
unit_words = st.sampled_from([w for ws in INFLECTED.values() for w in ws] + ["günah", "aynı", "ayrı", "aykırı", "yıldız", "gündem", "bugün"])
durations = st.builds("{} {}".format, said, unit_words)
rates = st.builds(
    lambda n, how: how(n), st.integers(1, 99), st.sampled_from([lambda n: f"%{n}", lambda n: f"% {n}", lambda n: f"yüzde {say_number(n)}"])
)
fillers = st.sampled_from(
    ["ve", "içinde", "süre", "itiraz", "icra", "mahkemesi", "mahkemesine", "haciz,", "karar;", "(bkz.)", "İtiraz", "HACİZ", "bir"]
)
texts = st.lists(st.one_of(durations, rates, fillers, said), min_size=1, max_size=9).map(" ".join)
wanted_units = st.sampled_from(["gün", "ay", "yıl"])
phrases = st.one_of(
    st.builds("{} {}".format, said, wanted_units),
    rates,
    st.builds("{} {} içinde".format, said, wanted_units),
    st.sampled_from(["itiraz", "icra mahkemesi", "haciz", "icra"]),
)


def test_the_slow_reader_knows_the_spec_examples():
    """The reader the code is held against is itself held against the rules."""
    assert slowly_found("3 gün", "üç (3) gündür") and slowly_found("üç gün", "süre 3 (üç) günlük") and slowly_found("yedi gün", "bir yedi gün")
    assert not slowly_found("3 gün", "13 gün") and not slowly_found("3 gün", "2,3 gün") and not slowly_found("yedi gün", "on yedi gün")
    assert slowly_found("%20", "yüzde yirmi") and not slowly_found("yüzde on", "yüzde on beş") and not slowly_found("altı ay", "altı ayrı")


@settings(max_examples=1500, deadline=None)
@given(phrases, texts)
@example("yedi gün", "on yedi gün")
@example("30 gün", "itiraz otuz bir gün")
@example("yüzde on", "yüzde onbeş")
@example("%20", "yüzde yirmi dokuzyüzdoksandokuz gün")
def test_a_phrase_is_found_exactly_where_a_slow_whole_text_reader_finds_it(wanted, text):
    assert found(wanted, text) is slowly_found(wanted, text)


@settings(max_examples=600, deadline=None)
@given(phrases, texts, st.randoms(use_true_random=False))
def test_a_phrase_put_into_a_text_in_another_spelling_is_found(wanted, text, rng):
    number = next((value for kind, value in items(wanted) if kind in ("number", "rate")), None)
    assume(number is not None and items(wanted)[0][0] == "number")
    n = int(number)
    again = wanted.replace(wanted.split(" gün")[0].split(" ay")[0].split(" yıl")[0], rng.choice([str(n), say_number(n), f"{say_number(n)} ({n})"]), 1)
    assert found(wanted, f"{text}; {again}, {text}")


@settings(max_examples=600, deadline=None)
@given(phrases, texts, texts)
def test_a_hit_is_the_phrase_in_the_counted_text(wanted, before, after):
    """What `hits` finds stands in the counted text."""
    folded = score.fold(f"{before} {wanted}; {after}")
    needle = score.count(score.fold(wanted))
    whole = score.count(folded)
    if any(score.hits(score.phrase(wanted), folded)):
        assert needle in whole
    for hit in score.hits(score.phrase(wanted), folded):
        assert hit.text[hit.start : hit.end] in (needle, score.fold(wanted))


# -- Folding --

anything = st.text(
    st.one_of(
        st.sampled_from("ıIiİşŞğĞçÇöÖüÜâîû'’-*_`<>&%.,;:()[]/\n \u00a0\u00ad\u200b\u0307\u0301\ufeff½²①ﬁ３"),
        st.characters(exclude_categories=("Cs",)),
    ),
    max_size=60,
)
letters = st.text(st.sampled_from("abcçdefgğhıijklmnoöprsştuüvyzABCÇDEFGĞHIİJKLMNOÖPRSŞTUÜVYZ 0123456789.,;()%"), max_size=60)


@settings(max_examples=800, deadline=None)
@given(letters)
def test_folding_twice_is_folding_once(text):
    once = score.fold(text)
    assert score.fold(once) == once


@settings(max_examples=800, deadline=None)
@given(anything)
def test_folded_text_has_single_plain_spaces_and_no_turkish_or_marked_letter(text):
    folded = score.fold(text)
    assert "  " not in folded and folded == folded.strip()
    assert not set(folded) & set("ıİşğçöüâîûIŞĞ\u0307\u0301\u00ad\u200b\ufeff'’\u00a0\n\t\u2028")


@settings(max_examples=500, deadline=None)
@given(letters)
def test_folding_does_not_see_decomposition_case_or_extra_spaces(text):
    folded = score.fold(text)
    assert score.fold(unicodedata.normalize("NFD", text)) == folded
    assert score.fold(unicodedata.normalize("NFC", text)) == folded
    assert score.fold(text.upper()) == folded
    assert score.fold(text.replace(" ", "\u00a0 \n")) == folded


@pytest.mark.parametrize("marked", ["*süre*", "_süre_", "`süre`", "~~süre~~", "<b>süre</b>", "s&uuml;re", "[süre](/adres)", "https://a.example/b süre", "sü-\nre"])
def test_each_kind_of_mark_alone_is_dropped(marked):
    assert score.fold(f"{marked} verilir") == "sure verilir"


@settings(max_examples=500, deadline=None)
@given(st.lists(st.text(st.sampled_from("abcçğıişöüAĞİŞ"), min_size=1, max_size=8), min_size=1, max_size=8), st.data())
def test_folding_does_not_see_bold_words(words, data):
    bold = [f"**{w}**" if data.draw(st.booleans()) else w for w in words]
    assert score.fold(" ".join(bold)) == score.fold(" ".join(words))


@settings(max_examples=500, deadline=None)
@given(phrases, texts, st.sampled_from(["NFC", "NFD"]))
def test_what_is_found_does_not_depend_on_form_case_spaces_or_bold(wanted, text, form):
    assert found(wanted, text) is found(wanted, unicodedata.normalize(form, text)) is found(wanted, text.upper())
    assert found(wanted, text) is found(wanted, text.replace(" ", "  \u00a0"))
    assert found(wanted, text) is found(wanted, " ".join(f"**{w}**" for w in text.split(" ")))
    assert found(wanted, text) is found(unicodedata.normalize(form, wanted).upper(), text)


@settings(max_examples=500, deadline=None)
@given(anything, anything)
def test_matching_never_crashes(wanted, text):
    for hit in score.hits(score.phrase(wanted or "x"), score.fold(text)):
        score.is_denied(hit)


# -- Numbers --


@settings(max_examples=500, deadline=None)
@given(st.integers(1, 9_999))
def test_number_words_have_the_value_they_say(n):
    words = plain(say_number(n))
    assert score.count(words) == str(n)
    assert score.count(words.replace(" ", "")) == str(n)
    assert score.count(f"{words} ({n})") == str(n)
    assert score.count(f"{n} ({words}) gunluk") == f"{n} gunluk"


@pytest.mark.parametrize(
    "wanted, texts_and_found",
    [
        (
            "690.000 TL",
            {
                "2024 için sınır 690.000 TL'dir.": True,
                "690.000,00 TL": True,
                "690 000 ₺": True,
                "altı yüz doksan bin lira": True,
                "1.690.000 TL": False,
                "690.000,50 TL": False,
                "690,00 TL": False,
                "69.0000 TL": False,
            },
        ),
        ("1.234,56 TL", {"1234,56 TL": True, "1,234.56 TL": True, "₺1.234,56": True, "1.234 TL": False, "11.234,56 TL": False}),
    ],
)
def test_amounts_are_read_the_turkish_way(wanted, texts_and_found):
    assert {text: found(wanted, text) for text in texts_and_found} == texts_and_found


@pytest.mark.parametrize(("token", "value"), [("2.700.000.00", 2700000), ("1" * 200, int("1" * 200)), ("1" * 201, None), ("12.50", Fraction(25, 2))])
def test_a_number_in_digits(token, value):
    assert score.digits_value(token) == value


@pytest.mark.parametrize(("words", "numbers"), [
    ("yirmi otuz", [20, 30]), ("on bir iki", [11, 2]), ("üç yüz", [300]), ("on yüz", [10, 100]), ("bir yüz", [1, 100]), ("dokuz yüz", [900]), ("yüz yüz", [100, 100]),
    ("yüz on", [110]), ("iki bin üç bin", [2003, 1000]), ("bin bin", [1000, 1000]),
    ("5 bir", [5, 1]), ("5 yüz", [5, 100]), ("0 yüz", [0, 100]), ("iki buçuk yüz", [Fraction(5, 2), 100]), ("bir buçuk bir", [Fraction(3, 2), 1]), ("bin buçuk", [1000, "bucuk"]), ("milyar", ["milyar"]), ("bir milyar", [1000000000]), ("yüz bir yüz", [101, 100]),
])
def test_number_words_in_a_row(words, numbers):
    """The longest number that the words form in their order; the rest begins another."""
    assert score.read_numbers(score.fold(words).split()) == numbers


def test_numbers_that_look_alike_and_phrases_without_one():
    assert score.count(score.fold("üçbirde iki")) == "ucbirde 2"        # two numbers in one word name no parts
    assert found("2,5 gün", "2,5 gün içinde") and not found("2,5 gün", "5 gün içinde")
    assert found("Türk lirası", "5 Türk lirası öder")
    assert score.hits(score.phrase(""), "abc") == []


# -- Denial --


def test_a_denial_is_listed_and_not_counted_while_facts_are_never_denied():
    sheet = score.fact_sheet({"anahtar_bilgiler": [["icra mahkemesi"]], "yanlis_isaretler": ["icra mahkemesi"]})
    result = score.match_turkish(sheet, score.fold("Görevli olan icra mahkemesi değildir."))
    assert (result.found, result.asserted, result.denied) == ([True], [], [0])


@pytest.mark.parametrize("noun", ["taşınmaz", "dokunulmaz", "kaçınılmaz", "vazgeçilmez", "değişmez", "tartışılmaz", "taşınmazlar", "kaçınılmazdır"])
def test_a_noun_or_adjective_in_maz_denies_nothing(noun):
    assert counted("genel mahkeme", f"Genel mahkeme {noun} sayılır.") == "asserted"


@pytest.mark.parametrize("verb", ["bakmaz", "görmez", "uygulanmaz", "yapılamaz", "edilemez", "veremezler", "olamazdı", "istenemezdir", "sorumlu tutulmazsınız"])
def test_a_negative_verb_within_two_words_denies(verb):
    assert counted("genel mahkeme", f"Buna genel mahkeme {verb}.") == "denied"


# The left column is a false marker of the bench, the right one a correct sentence about the same thing, or one that asks or sets a condition.
@pytest.mark.parametrize(
    "marker, text, what",
    [
        ("icra mahkemesinde dava aç", "Borçtan kurtulma davası icra mahkemesinde dava açılmaz, asliyede açılır.", "denied"),
        ("tanıkla ispat", "Bu olgu tanıkla ispatlanamaz.", "denied"),
        ("icra müdürlüğünden isten", "İptal icra müdürlüğünden istenemez.", "denied"),
        ("üç ay uzat", "Süre üç ay uzatılamaz.", "denied"),
        ("doğrudan memura karşı", "Doğrudan memura karşı dava açılamaz.", "denied"),
        ("üç ay uzat", "Süre üç ay uzatılır.", "asserted"),
        ("genel mahkeme", "Görevli yer genel mahkeme, icra bakmaz.", "asserted"),
        ("30 gün", "İtiraz süresi 30 gün olup uzatılamaz.", "asserted"),
        ("30 gün", "Süre 30 gündür ve uzatılamaz.", "asserted"),
        ("kesin süre", "Kesin süre olduğundan uzatılamaz.", "asserted"),
        ("iki yıl", "İki yıl geçmeden açılamaz.", "asserted"),
        ("7 gün", "7 gün içinde ödemez ise takip kesinleşir.", "asserted"),
        ("üç ay uzat", "Süre üç ay uzatılmazsa mühlet biter.", "asserted"),
        ("üç ay uzat", "Süre üç ay uzatılamaz mı?", "asserted"),
        ("üç ay uzat", "Yalnız üç ay uzatılmaz, altı ay da uzatılır.", "asserted"),
        ("doğrudan memura karşı", "Doğrudan memura karşı taşınmaz davası açılır.", "asserted"),
    ],
)
def test_what_a_clause_denies_and_what_not(marker, text, what):
    assert counted(marker, text) == what


# -- Time --


@pytest.mark.parametrize(
    "piece",
    [
        "bir ",
        "3 gün ",
        "1.",
        "on yedi ",
        "gün",
        "bir",
        "%20 ",
        "üç (3) ",
        "**a** ",
        "<b>",
        "değildir ",
        "a-\n",
        "1*",
        "[a](",
        "&amp;",
        "yuz",
        "genel mahkeme ",
        "yedi gün değil ",
        "0",
        "000 ",
    ],
)
def test_three_hundred_kilobytes_of_anything_are_matched_in_a_few_seconds(piece):
    import time

    text = (piece * (300_000 // len(piece) + 1))[:300_000]
    began = time.process_time()
    folded = score.fold(text)
    for wanted in ("üç gün", "yedi gün", "yüzde yirmi", "1.500 TL", "genel mahkeme"):
        for hit in score.hits(score.phrase(wanted), folded):
            score.is_denied(hit)
    assert time.process_time() - began < 5


def test_several_numbers_in_one_word_are_no_fraction():
    """"üçte 2" is 2/3; what is written in one word before the ending may be no single number, and then nothing is a fraction of it."""
    assert "2/3" in score.count(score.fold("alacağın üçte 2"))
    assert "/" not in score.count(score.fold("sıra üçbirde 2 kişi"))
