"""What the pages say: in each language, with the words of the reference, and in one form of numbers and moments."""

from __future__ import annotations

import ast
import re

from stagehold.settings import PROJECT

WEB = PROJECT / "include" / "stagehold" / "web"
STRING = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
TEXT = re.compile(rf'^  "?([\w. ]+)"?:\s+({STRING}(?:\s*\+\s*{STRING})*),$', flags=re.MULTILINE)
USED = re.compile(r"(?:textOf|contentOf)\(\s*\"([\w. ]+)\"")
GROUP = re.compile(r"withTexts\(\s*\"([\w.]+)\"")
PAGES = [path for path in sorted(WEB.rglob("*.js")) if "vendor" not in path.parts]
LANGUAGES = ("en", "de")


def texts(language: str) -> dict[str, str]:
    found = TEXT.findall((WEB / "texts" / f"{language}.js").read_text(encoding="utf-8"))
    return {key: "".join(ast.literal_eval(each) for each in re.findall(STRING, told)) for key, told in found}


def facts(text: str) -> list[str]:
    """That are named in each of its forms."""
    return [" ".join(sorted(re.findall(r"\{(\w+)\}", form))) for form in text.split("|")]


def test_each_file_is_read_to_its_end():
    for language in LANGUAGES:
        written = (WEB / "texts" / f"{language}.js").read_text(encoding="utf-8")
        assert len(texts(language)) == len(re.findall(r'^  "?[\w. ]+"?:', written, flags=re.MULTILINE)) > 30


def test_every_text_is_there_in_both_languages_with_the_same_facts():
    english, german = texts("en"), texts("de")
    assert list(german) == list(english)
    assert {key: facts(text) for key, text in german.items()} == {key: facts(text) for key, text in english.items()}
    assert [key for key, text in english.items() if not text.strip() or not german[key].strip()] == []


def test_pages_use_every_text_and_only_texts_that_exist():
    code = "\n".join(path.read_text(encoding="utf-8") for path in PAGES if path.parent.name != "texts")
    known, used = set(texts("en")), set(USED.findall(code))
    assert used - known == set()
    groups = {*re.findall(r"`([\w.]+)\.\$\{", code), *GROUP.findall(code)}
    named = set(re.findall(r'"([\w. ]+)"', code))
    assert {key for key in known - named if key.rpartition(".")[0] not in groups} == set()


def test_each_term_of_the_pages_stands_in_the_reference_with_the_same_sentence():
    page = (PROJECT / "docs" / "reference" / "words.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([\w, ]+) \| (.+) \|$", page, flags=re.MULTILINE))
    terms = {key.removeprefix("term."): text for key, text in texts("en").items() if key.startswith("term.")}
    assert {term: rows.get(term) for term in terms} == terms
    assert {"wave", "region", "partition", "epoch", "waiver", "savepoint"} <= set(terms)


def test_the_terms_that_the_pages_explain_are_terms():
    code = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    explained = {*re.findall(r"\bterm\(\"(\w+)\"", code), *re.findall(r"\bmeaningOf\(\"(\w+)\"\)", code)}
    assert explained
    assert {f"term.{word}" for word in explained} <= set(texts("en"))


def test_numbers_and_moments_are_written_in_one_place():
    own = re.compile(r"toLocale\w*|toFixed|\bIntl\.|DateTimeFormat|NumberFormat|getHours|toISOString\(\)\}")
    where = {
        path.name: own.findall(path.read_text(encoding="utf-8"))
        for path in PAGES
        if path.name not in ("airflow_choices.js", "formats.js", "numbers.js", "texts.js")
    }
    assert {name: found for name, found in where.items() if found} == {}


def templates(code: str) -> list[str]:
    """What stands in each ``html`...```, with a sign in place of what is in ``${}``; other ``...`` are left out."""
    done, open_ones, at = [], [("code", "")], 0
    while at < len(code):
        kind, told = open_ones.pop()
        if kind != "code" and code[at] == "`":
            done += [told] if kind == "html" else []
        elif kind != "code" and code.startswith("${", at):
            open_ones += [(kind, told + "\1"), ("code", "")]
            at += 1
        elif kind != "code":
            open_ones.append((kind, told + code[at]))
        elif code.startswith("html`", at):
            open_ones += [("code", ""), ("html", "")]
            at += 4
        elif code[at] in "`{":
            open_ones += [("code", ""), ("text" if code[at] == "`" else "code", "")]
        elif code[at] != "}" or not open_ones:
            open_ones.append((kind, told))
        at += 1
    return done


def words_of(code: str) -> list[str]:
    """That a page says by itself, in whatever language its code is written."""
    spoken = r'\b(?:title|label|aria-label|placeholder|note|text|yes)="([^"]*[A-Za-z]{2,}[^"]*)"'
    shown = (
        re.findall(spoken, one) + re.findall(r"[A-Za-z]{2,}", re.sub(r"<[^<>]*>", "", one)) for one in templates(code)
    )
    return [word for words in shown for word in words]


def test_pages_have_no_texts_of_their_own():
    code = 'html`<${Box} title="Waive it" as="p">${{} && html`<b>more ${`of ${it}`}</b>`} rest <//>`'
    assert words_of(code) == ["more", "Waive it", "rest"]
    said = {path.name: words_of(path.read_text(encoding="utf-8")) for path in PAGES}
    assert {name: words for name, words in said.items() if words} == {}
