"""Decides whether two translations of a sentence agree, with a model in float64 as the judge.

Rounding errors decide between two continuations whose scores are nearly equal. If two programs differ, the
judge computes in float64 how close the decision was: less than `TIE` is a tie, anything else a difference.
"""

import math
import sys
from collections import Counter

import torch

TIE = 1e-5  # log-probability, or score for a beam
MOST_TIES = 0.005  # of the sentences
SCORE = 1e-4  # the largest difference of two scores of the same tokens


class Judge:
    def __init__(self, model, limit):
        """`model` is a `peers.Transformers`; it is loaded in float64 when first needed."""
        self.single, self.limit, self.double = model, limit, None

    @property
    def exact(self):
        self.double = self.double or self.single.exact()
        return self.double

    def verdict(self, source, search, a, b, unforced=False):
        """same, tie, cut or different, for two outputs of the same source. `unforced`: the second program
        does not force `</s>` at the limit."""
        if a.tokens == b.tokens:
            return "same"
        if search.beam == 1:
            gap = self.gap(source, a.tokens, b.tokens)
        else:
            scores = [self.score(source, output.tokens) for output in (a, b)]
            gap = abs(scores[0] - scores[1])
            if gap > TIE:  # a tie between hypotheses that were pruned
                gap = closest_decision(self.exact, source, search, self.limit)
        if gap <= TIE:
            return "tie"
        return "cut" if unforced and self.is_cut(source, search, a, b) else "different"

    def gap(self, source, a, b):
        """|difference in log-probability| at the first token that differs."""
        first = next(i for i, (x, y) in enumerate(zip(a, b)) if x != y)
        row = next_tokens(self.exact, encode(self.exact, source), [a[:first]])[0]
        return abs(row[a[first]] - row[b[first]]).item()

    def score(self, source, tokens):
        """Log-probability / tokens. A forced `</s>` at the limit has log-probability 0."""
        memory = encode(self.exact, source)
        rows = all_tokens(self.exact, memory, [tokens[:-1]])[0]
        steps = [rows[i, token].item() for i, token in enumerate(tokens)]
        if len(tokens) == self.limit:
            steps[-1] = 0.0
        return sum(steps) / len(tokens)

    def is_cut(self, source, search, a, b):
        """Whether an output was cut, and transformers finds the second if nothing is forced. In a beam, the
        programs then compared hypotheses of different lengths."""
        if search.beam == 1 or not (a.cut or b.cut):
            return False
        [free] = self.exact.generate([source], search, self.limit - 1, forced_eos=False)
        found = free.tokens if free.tokens[-1] == self.exact.eos else [*free.tokens, self.exact.eos]
        return found == b.tokens


def encode(model, source):
    tokens = torch.tensor([source])
    return model.model.get_encoder()(input_ids=tokens, attention_mask=torch.ones_like(tokens))


def all_tokens(model, memory, prefixes):
    """log p of every token after each position of prefixes of one length: [prefixes, length + 1, V]."""
    rows = len(prefixes)
    inputs = torch.tensor([[model.start, *prefix] for prefix in prefixes])
    hidden = type(memory)(last_hidden_state=memory.last_hidden_state.expand(rows, -1, -1))
    logits = model.model(encoder_outputs=hidden, decoder_input_ids=inputs, use_cache=False).logits
    logits[..., model.pad] = -math.inf
    return logits.log_softmax(-1)


def next_tokens(model, memory, prefixes):
    return all_tokens(model, memory, prefixes)[:, -1]


def closest_decision(model, source, search, limit):
    """The smallest score difference on which any decision of the search depends."""
    if search.beam == 1:
        return greedy_margin(model, source, limit)
    return beam_search(model, source, search, limit)[1]


def greedy_margin(model, source, limit):
    memory, tokens, margin = encode(model, source), [], math.inf
    while len(tokens) < limit - 1 and tokens[-1:] != [model.eos]:
        best = next_tokens(model, memory, [tokens])[0].topk(2)
        margin = min(margin, (best.values[0] - best.values[1]).item())
        tokens.append(best.indices[0].item())
    return margin


def beam_search(model, source, search, limit):
    """Beam search as transformers does it, in its simplest form, without a cache: (tokens, score) and the
    closest decision. `</s>` is forced at the limit."""
    memory, width = encode(model, source), search.beam
    running, finished, margin = [((), 0.0)], [], math.inf
    for length in range(1, limit + 1):
        if length == limit:
            candidates = [((*tokens, model.eos), total) for tokens, total in running]
        else:
            scores = next_tokens(model, memory, [tokens for tokens, _ in running])
            scores = scores + torch.tensor([[total] for _, total in running], dtype=scores.dtype)
            best = scores.flatten().topk(2 * width + 2)
            size = scores.shape[1]
            candidates = [
                ((*running[at // size][0], at % size), total)
                for total, at in zip(best.values.tolist(), best.indices.tolist())
            ]
        ends = [tokens[-1] == model.eos for tokens, _ in candidates]
        # Only candidates among the best can end. One that ends but ranks lower is dropped.
        arrivals = [(t, s / length) for (t, s), end in zip(candidates[:width], ends) if end]
        if len(candidates) > width and (ends[width - 1] or ends[width]):
            margin = min(margin, candidates[width - 1][1] - candidates[width][1])
        finished = sorted(finished + arrivals, key=lambda c: -c[1])
        ranks = [score for _, score in finished[: width + 1]]
        margin = min([margin, *(a - b for a, b in zip(ranks, ranks[1:]))])
        finished = finished[:width]
        if length == limit or (search.early_stopping and len(finished) == width):
            break
        open_ = [c for c, end in zip(candidates, ends) if not end]
        running = open_[:width]
        margin = min(margin, open_[width - 1][1] - open_[width][1])
        if len(finished) == width:
            slack = running[0][1] / length - finished[-1][1]
            margin = min(margin, abs(slack))
            if slack <= 0.0:
                break
    return finished[0], margin


class Table:
    """Comparisons, one printed row each, and whether all of them meet the criteria."""

    HEAD = ("model", "search", "programs", "lines", "same", "ties", "cut", "differ", "scores")
    WIDTHS = (26, 24, 27, 6, 6, 5, 5, 7, 8)

    def __init__(self):
        self.failed = []
        print(self.line(self.HEAD))

    def line(self, cells):
        parts = [f"{c:<{w}}" if i < 3 else f"{c:>{w}}" for i, (c, w) in enumerate(zip(cells, self.WIDTHS))]
        return " ".join(parts).rstrip()

    def compare(self, model, search, first, second, sources, judge):
        """Each of `first` and `second` is (program, outputs)."""
        programs = f"{first[0]} = {second[0]}"
        pairs = list(zip(sources, first[1], second[1], strict=True))
        unforced = second[0].startswith("ctranslate2")
        verdicts = [judge.verdict(source, search, a, b, unforced) for source, a, b in pairs]
        counts = Counter(verdicts)
        distance = max(
            (abs(a.score - b.score) for (_, a, b), v in zip(pairs, verdicts) if v == "same"), default=0.0
        )
        numbers = (len(pairs), *(counts[v] for v in ("same", "tie", "cut", "different")), f"{distance:.1e}")
        print(self.line((model, search.name, programs, *numbers)), flush=True)
        for (source, a, b), verdict in zip(pairs, verdicts):
            if verdict == "different":
                print(f"  source {source}\n  {first[0]:>12} {a.score:.6f} {a.tokens}")
                print(f"  {second[0]:>12} {b.score:.6f} {b.tokens}")
                break  # one example
        where = f"{model}, {search.name}, {programs}"
        self.require(not counts["different"], f"{where}: {counts['different']} outputs differ")
        self.require(counts["tie"] <= MOST_TIES * len(pairs), f"{where}: {counts['tie']} ties")
        self.require(distance <= SCORE, f"{where}: scores differ by {distance:.1e}")

    def require(self, holds, failure):
        if not holds:
            self.failed.append(failure)

    def finish(self):
        for failure in self.failed:
            print(f"FAILED: {failure}", file=sys.stderr)
        if not self.failed:
            print("all criteria met")
        sys.exit(bool(self.failed))
