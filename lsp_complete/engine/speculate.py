"""The engine's proposer: an earlier suggestion, n-grams of prompt and output, a workspace's n-grams, a draft model.

Strategy: every source says what may follow, the adaptive length says what that is worth, and the best one is proposed or none.
N-grams are keyed on the text behind the prompt's last special token (what stands before the cursor) plus what was generated.
The part of the prompt up to that token is indexed once and kept: it is the same from key to key.

Rules:
- Engine thread only. A step takes some 11 µs, the first of a request 0.2 ms, of a new head of 2,000 tokens 2 ms (measured).
- No special token is proposed, and nothing behind the line end where the request stops there.
- Memory: the last `SEATS` requests, `HEADS` heads and `LOOKUPS` look-up texts; the store has its own limit.
- A draft model is given by whoever builds the engine; without it the rest works.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from lsp_complete.engine.adaptive import PROBE_EVERY, Adaptive
from lsp_complete.engine.api import CompletionRequest
from lsp_complete.engine.backend import PieceTable
from lsp_complete.engine.batchcost import BatchCost
from lsp_complete.engine.draftmodel import DraftModel
from lsp_complete.engine.ngrams import ORDERS, NgramIndex, NgramStore, special_tokens

SEATS, HEADS = 16, 16
LOOKUPS = 8
"""Look-up texts kept by their keys, so that a text is sent and indexed once, not once per request (4,000 tokens: 1.5 MB, 4 ms)."""
STORE_LIMIT = 60_000
"""N-grams of the store, about 9 MB."""

KINDS = ("draft", "ngram", "lookup", "store", "model")
"""What may propose; an earlier suggestion found again after an edit counts as "draft" here."""

LENGTHS = (2, 3, 4, 6, 10)
"""Acceptance of n-grams is kept apart by how many tokens agree before the proposal, from each of these on: on real files it
was 0.3–0.5, 0.5, 0.68, 0.76 and 0.88 per token."""

_TAIL_MAX = 512
_HEAD_STEP = 256
"""A prompt without special tokens, or with a long text behind the last one, is split at a multiple of this."""

_DRAFT_MAX = 512

_STEPS_LEFT = 16
"""Steps over which a draft model's catching up may be spread; a request has about so many."""

_PROBE_BEHIND = 64
"""A draft model that is turned off is tried again only where it has at most so many tokens to catch up with."""


@dataclass(slots=True)
class _Seat:
    """What is known of one request. base: tokens of `tail` that belong to the prompt; owed: forced bytes not paid yet. rejected: of the
    draft model's proposals, in a row."""

    request: CompletionRequest
    head: NgramIndex
    tail: NgramIndex
    lookup: NgramIndex | None
    base: int
    owed: int
    filled: bool = False
    last: str = field(default="")
    rejected: int = 0


class Speculator:
    """See `proposer.Proposer`. kinds: which sources to use; all by default.

    store_limit: n-grams of the store, 0 for none. back_off: see `EngineOptions.draft_back_off`. learn: whether heads of prompts and look-up texts feed it (what other files
    and windows of this engine showed); `store.add` feeds it too. model: a draft model that `draft_problem` accepts.
    """

    def __init__(
        self,
        vocab: PieceTable,
        size: int,
        cost: BatchCost | None = None,
        store_limit: int = STORE_LIMIT,
        model: DraftModel | None = None,
        learn: bool = True,
        back_off: int = 0,
    ) -> None:
        self.kinds: Collection[str] = KINDS
        self.cost = cost or BatchCost()
        self.adaptive = Adaptive(self.cost)
        self.special = special_tokens(vocab, size)
        self.store = NgramStore(self.special, store_limit) if store_limit else None
        self.model = model
        self.learn = learn
        self._back_off = back_off
        self._vocab = vocab
        self._seats: OrderedDict[int, _Seat] = OrderedDict()
        self._heads: OrderedDict[tuple[int, ...], NgramIndex] = OrderedDict()
        self._lookups: OrderedDict[str, NgramIndex] = OrderedDict()

    def propose(
        self, context: Sequence[int], generated: Sequence[int], request: CompletionRequest, limit: int
    ) -> list[int]:
        """See `Proposer`. `context` is the request's prompt."""
        if limit <= 0:
            return []
        seat = self._seat(request, generated)
        best: list[int] = []
        gain, kind = 1.0, ""
        declined = ("", 0, 0.0)
        for name, tokens in self._offers(seat, generated, limit):
            usable = self._usable(seat, tokens)
            if not usable:
                continue
            length = self.adaptive.length(name, len(usable))
            if length.tokens and length.gain > gain:
                best, gain, kind = usable[: length.tokens], length.gain, name
            elif not length.tokens and length.gain > declined[2]:
                declined = (name, usable[0], length.gain)
        if not best and self.model is not None and "model" in self.kinds:
            kind, best = "model", self._from_model(seat, [*context, *generated], limit)
        if not best and declined[0] and self.adaptive.probe():
            kind, best = declined[0], [declined[1]]
        seat.last = kind if best else ""
        return best

    def observe(self, request: CompletionRequest, proposed: int, accepted: int) -> None:
        """See `Proposer`."""
        seat = self._seats.get(id(request))
        if seat is not None and seat.last:
            self.adaptive.observe(seat.last, proposed, accepted)
            if seat.last == "model":
                seat.rejected = after_verdict(seat.rejected, proposed, accepted)
            seat.last = ""

    def report(self) -> dict[str, dict[str, int]]:
        """Sums per kind: tokens proposed, judged (up to the first rejected one) and accepted."""
        return {
            kind: {
                "proposed": tally.proposed_sum,
                "judged": tally.judged_sum,
                "accepted": tally.accepted_sum,
            }
            for kind, tally in sorted(self.adaptive.tallies.items())
            if tally.proposals
        }

    def _offers(self, seat: _Seat, generated: Sequence[int], limit: int) -> list[tuple[str, list[int]]]:
        """What each source would propose."""
        offers: list[tuple[str, list[int]]] = []
        recent = seat.tail.tokens
        if "draft" in self.kinds and seat.request.drafts:
            offers.append(from_drafts(seat.request.drafts, generated, limit))
        if "ngram" in self.kinds:
            offers.append(_longest("ngram", (seat.tail, seat.head), recent, limit))
        if "lookup" in self.kinds and seat.lookup is not None:
            offers.append(_longest("lookup", (seat.lookup,), recent, limit))
        if "store" in self.kinds and self.store is not None:
            offers.append(("store", self.store.after(recent, limit)))
        return offers

    def _from_model(self, seat: _Seat, tokens: Sequence[int], limit: int) -> list[int]:
        """What the draft model proposes, where its own steps and the text it has to catch up with are worth it."""
        model, step_ms = self.model, self.cost.single_ms
        assert model is not None
        if model.cost_ms and not step_ms:
            return []  # a step of the target has not been measured yet
        limit = backed_off(limit, seat.rejected, self._back_off)
        found = self.adaptive.length("model", limit, model.cost_ms / step_ms if step_ms else 0.0)
        length, behind = found.tokens, model.behind(tokens)
        if step_ms and behind * model.prefill_ms / step_ms > (found.gain - 1.0) * _STEPS_LEFT:
            length = 0
        if not length and behind <= _PROBE_BEHIND:
            length = int(self.adaptive.probe("model", 8 * PROBE_EVERY))
        return self._usable(seat, model.after(tokens, length)) if length else []

    def _usable(self, seat: _Seat, tokens: Sequence[int]) -> list[int]:
        """The part of a proposal that can help: before a special token, and before the line end if that stops."""
        single = seat.request.stop.mode == "line"
        filled = seat.filled
        for i, token in enumerate(tokens):
            if not 0 <= token < len(self.special) or self.special[token]:
                return list(tokens[:i])
            if single:
                piece = self._vocab.piece(token)
                if b"\n" in piece and (filled or piece.split(b"\n", 1)[0].strip()):
                    return list(tokens[:i])
                filled = filled or bool(piece.strip())
        return list(tokens)

    def _seat(self, request: CompletionRequest, generated: Sequence[int]) -> _Seat:
        seat = self._seats.get(id(request))
        if seat is not None and seat.request is request and _goes_on(seat, generated):
            self._seats.move_to_end(id(request))
        else:
            seat = self._seats[id(request)] = self._new_seat(request)
            if len(self._seats) > SEATS:
                self._seats.popitem(last=False)
        for token in generated[len(seat.tail.tokens) - seat.base :]:
            seat.tail.append(token)
            piece = self._vocab.piece(token)
            seat.filled = seat.filled or bool(piece[seat.owed :].strip())
            seat.owed = max(0, seat.owed - len(piece))
        return seat

    def _new_seat(self, request: CompletionRequest) -> _Seat:
        prompt = request.prompt
        cut = self._cut(prompt)
        tail = NgramIndex(prompt[cut:], self.special)
        return _Seat(request, self._head(prompt[:cut]), tail, self._lookup(request), len(prompt) - cut, len(request.forced))

    def _lookup(self, request: CompletionRequest) -> NgramIndex | None:
        """The index of the request's look-up text: the one kept under its key, else made of the text that came along."""
        key = request.lookup_key
        if not key:
            return self._head(request.lookup) if request.lookup else None
        found = self._lookups.get(key)
        if found is None and request.lookup:
            found = self._lookups[key] = NgramIndex(request.lookup, self.special)
            if len(self._lookups) > LOOKUPS:
                self._lookups.popitem(last=False)
            if self.learn and self.store is not None:
                self.store.add(request.lookup)
        if found is not None:
            self._lookups.move_to_end(key)
        return found

    def _cut(self, prompt: Sequence[int]) -> int:
        """Where the text before the cursor begins: behind the last special token, or nearer if that is far."""
        nearest = (len(prompt) - _TAIL_MAX) // _HEAD_STEP * _HEAD_STEP if len(prompt) > _TAIL_MAX else 0
        for at in range(len(prompt) - 1, nearest - 1, -1):
            if self.special[prompt[at]]:
                return at + 1
        return nearest

    def _head(self, tokens: tuple[int, ...]) -> NgramIndex:
        found = self._heads.get(tokens)
        if found is not None:
            self._heads.move_to_end(tokens)
            return found
        found = self._heads[tokens] = NgramIndex(tokens, self.special)
        if len(self._heads) > HEADS:
            self._heads.popitem(last=False)
        if self.learn and self.store is not None:
            self.store.add(tokens)
        return found


def backed_off(limit: int, rejected: int, back_off: int) -> int:
    """Most tokens of the next proposal after so many that were rejected whole: half for every `back_off` of them, at least one."""
    return max(1, limit >> min(rejected // back_off, 8)) if back_off else limit


def after_verdict(rejected: int, proposed: int, accepted: int) -> int:
    """Rejections in a row after one more proposal; one that was accepted in part changes nothing."""
    if not accepted:
        return rejected + 1
    return 0 if accepted == proposed else rejected


def _goes_on(seat: _Seat, generated: Sequence[int]) -> bool:
    """Whether `generated` continues what this seat has seen."""
    seen = len(seat.tail.tokens) - seat.base
    return seen <= len(generated) and (not seen or seat.tail.tokens[-1] == generated[seen - 1])


def _longest(
    kind: str, indexes: Sequence[NgramIndex], recent: Sequence[int], limit: int
) -> tuple[str, list[int]]:
    """What followed the longest key that was seen before; nearer indexes come first."""
    for order in ORDERS:
        length, found = max((index.after(recent, order, limit) for index in indexes), key=lambda hit: hit[0])
        if found:
            return f"{kind}:{max(known for known in LENGTHS if known <= length)}", found
    return f"{kind}:{LENGTHS[0]}", []


def from_drafts(
    drafts: Sequence[Sequence[int]], generated: Sequence[int], limit: int
) -> tuple[str, list[int]]:
    """What is left of an earlier suggestion: in step ("draft"), or found again after an edit ("realigned").

    Where the output left the suggestion, its last three tokens, else two, are looked for in it; the occurrence nearest to
    the output's own length wins.
    """
    n = len(generated)
    output = tuple(generated)
    for draft in drafts:
        if len(draft) > n and tuple(draft[:n]) == output:
            return "draft", list(draft[n : n + limit])
    for order in (3, 2):
        if n < order:
            continue
        window = output[-order:]
        for draft in drafts:
            known = tuple(draft[:_DRAFT_MAX])
            places = [at for at in range(order, len(known)) if known[at - order : at] == window]
            if places:
                at = min(places, key=lambda place: abs(place - n))
                return "realigned", list(known[at : at + limit])
    return "draft", []
