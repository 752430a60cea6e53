"""The frame decoder: fed whole, byte by byte, cut anywhere, with trailing data, and with garbage."""

from __future__ import annotations

import contextlib
import itertools
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsp_complete.engine import protocol
from lsp_complete.engine.protocol import FrameDecoder, encode_frame, error_from, error_message, prove, proven
from lsp_complete.errors import EngineUnavailable, MemoryPlanError, ModelError, ProtocolError, RequestFailed

MESSAGES = [{"t": "hello", "version": "1"}, {"t": "delta", "id": 1, "data": "é‸"}, {"t": "x", "n": [1, 2.5, None]}]
STREAM = b"".join(encode_frame(m) for m in MESSAGES)


def drain(decoder: FrameDecoder) -> list[object]:
    found = []
    while (message := decoder.next_message()) is not None:
        found.append(message)
    return found


def test_whole_stream_with_trailing_data() -> None:
    decoder = FrameDecoder()
    decoder.receive(STREAM + b"\x00\x00")
    assert drain(decoder) == MESSAGES
    assert decoder.pending == 2


def test_byte_by_byte() -> None:
    decoder, found = FrameDecoder(), []
    for n in range(len(STREAM)):
        decoder.receive(STREAM[n : n + 1])
        found += drain(decoder)
    assert found == MESSAGES


@settings(deadline=None)
@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_any_cut(cuts: list[int]) -> None:
    decoder, found = FrameDecoder(), []
    edges = [0, *sorted(cuts), len(STREAM)]
    for a, b in itertools.pairwise(edges):
        decoder.receive(STREAM[a:b])
        found += drain(decoder)
    assert found == MESSAGES


def test_oversized_frame_is_refused_by_its_header_alone() -> None:
    decoder = FrameDecoder(limit=10)
    decoder.receive(struct.pack("!I", 11))
    with pytest.raises(ProtocolError, match="over the limit"):
        decoder.next_message()


def test_good_frames_before_a_bad_one_are_given_and_the_decoder_stays_dead() -> None:
    decoder = FrameDecoder()
    decoder.receive(STREAM + struct.pack("!I", 3) + b"{{{" + STREAM)
    assert [decoder.next_message() for _ in MESSAGES] == MESSAGES
    for _ in range(2):
        with pytest.raises(ProtocolError):
            decoder.next_message()
    decoder.receive(STREAM)
    assert decoder.pending == 0


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"1", b"null", b'"t"', b"{}", b'{"t":1}', b'{"t":"x","v":NaN}', b'{"t":"x","v":-Infinity}',
     b"\xff\xfe", b'{"t":"x"', b"[" * 100_000, b'{"t":"x","v":' + b"9" * 5000 + b"}", b'{"t":"x"}{"t":"x"}'],
)
def test_garbage_is_a_protocol_error_that_does_not_quote_it(body: bytes) -> None:
    decoder = FrameDecoder()
    decoder.receive(struct.pack("!I", len(body)) + body)
    with pytest.raises(ProtocolError) as caught:
        decoder.next_message()
    assert "Infinity" not in str(caught.value) and len(str(caught.value)) < 200


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_never_raise_anything_else(data: bytes) -> None:
    decoder = FrameDecoder(limit=100)
    decoder.receive(data)
    with contextlib.suppress(ProtocolError):
        drain(decoder)


def test_too_large_a_message_cannot_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "FRAME_LIMIT", 20)
    with pytest.raises(ProtocolError, match="over the limit"):
        encode_frame({"t": "x", "text": "a" * 20})


def test_values_outside_json_cannot_be_sent() -> None:
    for value in (float("nan"), b"bytes", {1, 2}):
        with pytest.raises(ProtocolError):
            encode_frame({"t": "x", "v": value})


@pytest.mark.parametrize("error", [
    EngineUnavailable("a"), RequestFailed("b"), ModelError("c"), MemoryPlanError("d"),
])  # fmt: skip
def test_errors_keep_kind_and_words(error: Exception) -> None:
    back = error_from(error_message(3, error))
    assert type(back) is type(error) and str(back) == str(error)


def test_an_answer_that_cannot_be_sent_fails_its_request() -> None:
    assert isinstance(error_from(error_message(3, ProtocolError("too large"))), RequestFailed)


def test_an_unexpected_error_does_not_carry_its_words() -> None:
    message = error_message(3, KeyError("secret user text"))
    assert "secret" not in str(message) and isinstance(error_from(message), RequestFailed)


def test_fields_are_checked() -> None:
    for bad in (True, -1, 1.0, "1", None, 2**60):
        with pytest.raises(ProtocolError):
            protocol.int_field({"t": "x", "id": bad}, "id")
    with pytest.raises(ProtocolError):
        protocol.text_field({"t": "x" * 1000, "a": 1}, "a")


def test_proof_depends_on_secret_role_and_nonce() -> None:
    proof = prove(b"s", "engine", "n")
    assert proven(b"s", "engine", "n", proof)
    assert not proven(b"S", "engine", "n", proof)
    assert not proven(b"s", "client", "n", proof)
    assert not proven(b"s", "engine", "N", proof)
    assert not proven(b"s", "engine", "n", "\ud800")
