"""Expressions are read as RE2 reads them, match whole names, and cannot take long."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.re2.matcher import PATTERN_LENGTH_MAX, Regex
from riverlog.re2.parser import InvalidRegex

# What Apache Kafka 4.3.1 answered with INVALID_REGULAR_EXPRESSION.
REFUSED = [
    *("a**", "*a", "a*+", "a{2}{3}", "a{2,1}", "a{1001}", "(a", "a)", "(?x)a", "(?=a)", "(?!a)", "(?<=a)"),
    *("(?<!a)", "(?P<>a)", "(?P<n-1>a)", "(?P=n)", "\\1", "\\8", "\\x4", "\\xzz", "\\x{110000}", "\\Z"),
    *("\\C", "\\E", "\\e", "\\", "[", "[]", "[a", "[a-", "[z-a]", "[a-\\d]", "[[:foo:]]", "\\p{Foo}", "\\p"),
    *("\\p{L", "(?", "(?i", "(?P<n", "(?P<n>a)(?P<n>b)", "\\u0041", "\\cA", "[a-\\]]", "[\\b]", "(?i)*"),
    *("\\h", "\\k<n>", "\\G", "(?#c)", "a++", "a?+", "a{2}+", "a{2}*", "\\x{}"),
]
# What it took.
TAKEN = [
    *("a*", "a*?", "a{2}", "a{1000}", "a{,3}", "a{", "a{2", "()", "(?:)", "(?i)a", "(?i:a)", "(?-i:a)"),
    *("(?P<n>a)", "(?<n>a)", "\\0", "\\012", "\\08", "\\x41", "\\x{41}", "\\d\\D\\w\\W\\s\\S", "\\b\\B"),
    *("\\A\\z", "\\Qa.b", "\\Qa\\Eb", "\\a\\f\\n\\r\\t\\v", "\\_", "\\-", "\\.", "[]a]", "[^]a]", "[a-]"),
    *("[-a]", "[\\d-z]", "[\\w.]", "[[:alpha:]]", "[[:^alpha:]]", "[:alpha:]", "[[:alpha]", "\\pL", "\\p{L}"),
    *("\\p{Lu}", "\\p{^Lu}", "\\PL", "\\p{Latin}", "\\p{Greek}", "^a$", "a|b|", "|", "", "a||b", "x{0}"),
    *("(a{100}){11}", "((((((((((a))))))))))", "é", "[à-ü]", "^*", "$*", "\\b*", "(|a)*", "(?m)^a$", "(?s)."),
    *("(?U)a*", "(?imsU-i)a", "a??", "a{2}?", "[a&&b]", "[[a]]", "\\p{Any}", "\\p{Common}", "\\07", "\\777"),
]


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_kafka_refuses_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidRegex):
        Regex(pattern)


@pytest.mark.parametrize("pattern", TAKEN)
def test_what_kafka_takes_is_taken(pattern: str) -> None:
    Regex(pattern).matches("a")


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("orders", ["orders"], ["orders2", "my-orders", ""]),
        ("orders.*", ["orders", "orders-eu"], ["my-orders"]),
        (r"orders\.(eu|us)", ["orders.eu", "orders.us"], ["orders-eu", "orders."]),
        ("(?i)Orders-[A-C]+", ["ORDERS-abc", "orders-B"], ["orders-d"]),
        ("[^.]+", ["a-b_C9"], ["a.b"]),
        (r"\bfoo\b.*", ["foo", "foo-bar", "foo.x"], ["foobar", "foo_bar"]),
        ("^a{2,3}$", ["aa", "aaa"], ["a", "aaaa"]),
        ("a|", ["a", ""], ["b"]),
        (r"\Qa.b\E+", ["a.b", "a.bb"], ["axb", "a.ba.b"]),
        ("[[:upper:]][[:digit:]]*", ["A12"], ["a1"]),
        (r"\p{Lu}\P{Lu}", ["Ab", "A-"], ["AB"]),
        (r"\x61\x{62}\143", ["abc"], ["abC"]),
        (r"(a(?i)b)c", ["abc", "aBc"], ["aBC", "Abc"]),
    ],
)
def test_whole_names_match(pattern: str, matching: list[str], other: list[str]) -> None:
    regex = Regex(pattern)
    assert [name for name in matching if regex.matches(name)] == matching
    assert [name for name in other if regex.matches(name)] == []


ATOMS = st.sampled_from(["a", "b", "-", ".", r"\.", "[ab]", "[^a]", r"\w", r"\d", "^", "$", r"\b", r"\B"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda parts: f"(?:{parts[0]}|{parts[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?"])).map(
            lambda parts: f"(?:{parts[0]}){parts[1]}"
        ),
    ),
    max_leaves=6,
)


@given(PATTERNS, st.text("abX9-._", min_size=1, max_size=7))
def test_simple_expressions_match_as_in_python(pattern: str, name: str) -> None:
    assert Regex(pattern).matches(name) == (re.fullmatch(pattern, name) is not None)


@pytest.mark.parametrize(
    "pattern", ["(a*)*b", "(a|a)*b", "(a|aa)+b", "(.*){20}b", "a?" * 100 + "a" * 100 + "b"]
)
def test_no_expression_takes_long(pattern: str) -> None:
    regex, name = Regex(pattern), "a" * 249
    start = time.perf_counter()
    assert not regex.matches(name)
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize(
    "pattern",
    [
        "((a{1000}){1000}){1000}",
        "(" * 5000 + ")" * 5000,
        "a" * (PATTERN_LENGTH_MAX + 1),
        "(?:a|b){1000}",
        "(" * 200 + ")" * 200,
    ],
)
def test_an_expression_that_is_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidRegex):
        Regex(pattern)


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        ("spark/.*", {"spark/1 a", "spark/é"}),
        ("[^/]+", {"plain:id"}),
        ("spark/[a-ü]", {"spark/é"}),
        ("spark/[à-ü]", {"spark/é"}),
        ("\\w+/\\d\\s\\S", {"spark/1 a"}),
        ("\\Qplain:\\Eid", {"plain:id"}),
        ("\\w+\\W\\pL+", {"plain:id", "spark/é"}),
    ],
)
def test_names_of_any_characters_match_with_their_alphabet(pattern: str, matching: set[str]) -> None:
    names = {"spark/1 a", "spark/é", "plain:id"}
    regex = Regex(pattern, frozenset("".join(names)))
    assert {name for name in names if regex.matches(name)} == matching
