"""What a command prints, bounded and decoded."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordering.text import clean
from workers.output import Output


def fed(*pieces: bytes, head: int = 10, tail: int = 10) -> Output:
    output = Output(head, tail)
    for piece in pieces:
        output.feed(piece)
    return output


def test_short_output_is_whole() -> None:
    assert fed(b"one\n", b"two\n").text() == "one\ntwo\n"
    assert Output().text() == ""


def test_middle_is_cut_and_counted() -> None:
    snapshot = fed(b"a" * 10, b"b" * 25, b"c" * 10).snapshot()
    assert (snapshot.head, snapshot.tail, snapshot.dropped) == ("a" * 10, "c" * 10, 25)
    assert snapshot.text() == "aaaaaaaaaa\n... 25 bytes left out ...\ncccccccccc"


def test_full_head_never_changes() -> None:
    output = fed("éééééé".encode())  # 12 bytes: the head ends after 10
    early = output.snapshot()
    output.feed(b"x" * 100)
    assert early.head == output.snapshot().head == "é" * 5


def test_character_across_the_seam_is_whole_while_nothing_is_dropped() -> None:
    assert fed("aaaaaaaaa€bb".encode()).text() == "aaaaaaaaa€bb"


@pytest.mark.parametrize("sign", ["é", "€", "🙂"])
def test_no_character_is_cut_in_two_where_bytes_are_dropped(sign: str) -> None:
    for shift in range(4):
        raw = b"." * shift + (sign * 50).encode()
        snapshot = fed(raw).snapshot()
        assert "\ufffd" not in snapshot.text()
        assert len(snapshot.head.encode()) + len(snapshot.tail.encode()) + snapshot.dropped == len(raw)


def test_what_is_not_utf8_becomes_visible() -> None:
    assert fed(b"a\xffb\x00c").text() == "a\ufffdb\ufffdc"
    assert "\ufffd" in fed(b"\xed\xa0\x80").text()  # a surrogate in three bytes
    fed(b"\x80" * 50).text().encode()


def test_clean_takes_what_postgres_refuses() -> None:
    assert clean("a\0b\ud800c€🙂") == "a\ufffdb\ufffdc€🙂"


@given(st.lists(st.binary(max_size=40)), st.integers(0, 20), st.integers(0, 20))
def test_pieces_do_not_matter_and_all_bytes_are_accounted_for(pieces: list[bytes], head: int, tail: int) -> None:
    whole = b"".join(pieces)
    in_pieces, at_once = fed(*pieces, head=head, tail=tail).snapshot(), fed(whole, head=head, tail=tail).snapshot()
    assert in_pieces == at_once
    assert pickle.loads(pickle.dumps(at_once)) == at_once
    if len(whole) <= head + tail:
        assert at_once.text() == whole.decode("utf-8", "replace").replace("\0", "\ufffd")
    else:
        assert len(whole) - head - tail <= at_once.dropped <= len(whole) - head - tail + 6
    at_once.text().encode()
