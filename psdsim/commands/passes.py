"""Commands about passes: drafting, scoring, judging, and what becomes of a proposal."""

from __future__ import annotations

from dataclasses import dataclass

from psdsim.commands.tree import Tree
from psdsim.commands.words import Counts, Handle, Ids, Mask, StopRule


@dataclass(slots=True, eq=False)
class Chunks:
    """Pieces of prompts that ride along in a target pass (chunked prefill).

    Parameters
    ----------
    ids
        Requests, shape (n,).
    n_tokens
        Prompt tokens of each in this pass, shape (n,), >= 1.
    completes
        Whether the piece is the prompt's last, after which the request decodes.
    """

    ids: Ids
    n_tokens: Counts
    completes: Mask


@dataclass(slots=True, eq=False)
class Prefill:
    """Compute the prompts of `ids` on target and draft; each request emits its first token."""

    ids: Ids
    group: int = 0


@dataclass(slots=True, eq=False)
class Draft:
    """Draft `n` tokens for each request; plainly, one draft forward per token.

    Parameters
    ----------
    ids
        Requests.
    n
        Tokens to draft: one number for all, or one per request. Of a tree: its depth.
    after
        Tentative tokens (per request, or one number) that the draft continues from, on top
        of the confirmed prefix. PEARL drafts a block behind one that is not verified yet.
    group
        Which group of the schedule it is, for records and timelines.
    passes
        Forwards that draft the whole block at once (block and diffusion drafters); 0: none, the
        block is read off what an earlier pass left. None: one forward a token.
    width
        Nodes that every forward adds to each request's tree, for a tree that grows level by level.
    inputs
        Variants of a request's input that the drafter reads side by side in every forward.
    tree
        The shape of the proposal; its depth is `n`. None: a chain.
    candidates
        Independent drafts of the whole block for each request, of which the best is taken.
    variant
        Which of the acceptance model's drafters it is: one number, or one per request.
    stop
        Ends a request's draft early, from what is believed of its tokens so far.
    """

    ids: Ids
    n: int | Counts
    after: int | Counts = 0
    group: int = 0
    passes: int | None = None
    width: int = 1
    inputs: int = 1
    tree: Tree | None = None
    candidates: int = 1
    variant: int | Counts = 0
    stop: StopRule | None = None


@dataclass(slots=True, eq=False)
class Confidence:
    """Ask what the drafter believes of a finished draft: `Chances`, shape (n, longest).

    They are estimates, never the outcome. Rows follow the draft's `ids`; places beyond a
    request's own length are 0.
    """

    draft: Handle


@dataclass(slots=True, eq=False)
class Score:
    """One target pass over `ids`; it needs no verdict to start.

    Parameters
    ----------
    ids
        Requests that decode in this pass.
    n
        Drafted tokens to test per request: one number, or one per request. Of a tree: its depth.
    bonus
        True: the row after the last drafted token yields a token of its own (chain SD).
        False with `peek`: that row tests the first token of `peek` (PEARL's pre-verify); the
        pass may start before this token exists. False without: there is no such row.
    peek
        The running draft whose first token is tested when `bonus` is False.
    chunks
        Prompt pieces in the same pass.
    group
        Which group of the schedule it is.
    of
        The finished draft whose first `n` tokens are tested; what it has beyond is dropped.
        Needed where the draft is a tree, has candidates or a variant, or is not tested whole.
    rows
        Tokens fed per request, where they are not what `n` and `of` say (a second copy of the
        draft, a window of several candidates).
    on
        Which copy of the target runs it.
    ranks
        Up to which rank the target's own token is looked up among the drafter's candidates.
    """

    ids: Ids
    n: int | Counts
    bonus: bool = True
    peek: Handle | None = None
    chunks: Chunks | None = None
    group: int = 0
    of: Handle | None = None
    rows: int | Counts | None = None
    on: int = 0
    ranks: int = 0


@dataclass(slots=True, eq=False)
class Judge:
    """Apply the acceptance rule to a finished `Score`; the tokens are emitted now.

    Parameters
    ----------
    score
        The pass.
    ids
        Whose rows count, where an earlier verdict made those of the others void: their drafts in
        it are discarded. None: all.
    """

    score: Handle
    ids: Ids | None = None


@dataclass(slots=True, eq=False)
class Verdict:
    """What came of a target pass.

    Parameters
    ----------
    n_accepted
        Accepted drafted tokens per request, shape (n,), before the stop clips anything.
        None where nothing was drafted.
    n_tested
        Drafted tokens tested: one number for all, or one per request (of a tree, its depth).
    stopped
        Which requests emitted their last token and left; None if none did.
    joined
        Requests whose prompt was completed in this pass and that decode from now on.
    rank
        With `Score.ranks`: rank of the target's own token behind the accepted ones among the
        drafter's candidates, shape (n,); 0: not among the first `ranks`.
    candidate
        With candidates: whose block was taken, shape (n,).
    """

    n_accepted: Counts | None
    n_tested: int | Counts
    stopped: Mask | None
    joined: Ids
    rank: Counts | None = None
    candidate: Counts | None = None

    @property
    def hit(self) -> Mask | None:
        """Per request: everything tested was accepted; None where nothing was drafted.

        With a ``peek`` that includes the first token of the next block.
        """
        return None if self.n_accepted is None else self.n_accepted == self.n_tested


@dataclass(slots=True, eq=False)
class Keep:
    """Keep a drafted block for the requests in `mask`; for the others it is discarded.

    Parameters
    ----------
    draft
        The finished ``Draft``.
    ids
        The requests of that draft.
    mask
        Whose block lives on, shape (n,); None discards it for all.
    untested
        Whose block no pass has tested a token of yet, shape (n,); None: a pass has tested every
        block's first token (`Score.peek`), which is then neither kept nor discarded here.
    """

    draft: Handle
    ids: Ids
    mask: Mask | None
    untested: Mask | None = None


@dataclass(slots=True, eq=False)
class Discard:
    """Throw away `n` drafted tokens of each request that no pass will test any more."""

    ids: Ids
    n: int | Counts
