"""The gateway's rate limit for P2: one token bucket, shared fairly by the sources.

Seen from the other side a token bucket is a queue of what has been admitted and not yet paid for: every
admission adds one to its source's debt, and `rate_per_s` is paid back in equal parts by all sources that owe
something. That is generalized processor sharing (Parekh and Gallager, IEEE/ACM ToN 1(3), 1993), kept in
virtual time as in weighted fair queueing: V is what each of them has paid so far, a source owes `finish - V`.

A source is admitted while the sum of the debts stays within the burst: the plain bucket. Beyond that there
is half a second's worth of overdraft, from which a source may take as long as it owes no more than what is
left of it ("dynamic thresholds", Choudhury and Hahne, IEEE/ACM ToN 6(2), 1998), and always its first one. So
the noisy ones, who owe much, have to wait for real tokens, and a quiet one finds room.

Pure: `now` is monotonic seconds.
"""

from heapq import heappop, heappush, heapreplace

OVERDRAFT_S = 0.5
_REST = ""  # no source is called that: names have at least one character
_ROUNDING = 1e-9  # of a token: keeps float noise from delaying a source that comes exactly at the rate


class FairBucket:
    """Admits `rate_per_s` in the long run, and in any T seconds at most `rate_per_s * (T + burst_s + 0.5)`.

    A source alone gets the whole rate and the whole burst. Among several the rate is shared max-min fair: one
    that asks for less than an equal share gets what it asks for, and what it leaves goes to the others in
    equal parts. That holds while the sources that press at once are fewer than twice the tokens of burst and
    overdraft (for 20 per second about 40 sources); with more, first come, first served. Burst and overdraft
    are at least one event each. A rate of 0 means no limit.

    A source is remembered only while it owes something, so one that stops is forgotten within seconds. The
    sum of the debts is bounded, and through it the number of sources: at most e times the sum, 82 for 20 per
    second. Should more than `sources_max` owe at once, which takes a rate of several hundred, those beyond
    share one account.
    """

    __slots__ = ("_burst", "_finish", "_heap", "_limit", "_now", "_rate", "_sources_max", "_sum", "_virtual")

    def __init__(self, rate_per_s: float = 20.0, burst_s: float = 1.0, sources_max: int = 1024) -> None:
        self._rate = rate_per_s
        self._burst = max(1.0, rate_per_s * burst_s) + _ROUNDING
        self._limit = self._burst + max(1.0, rate_per_s * OVERDRAFT_S)
        self._sources_max = sources_max
        self._finish: dict[str, float] = {}
        # One entry per source; an admission only moves `finish`, the entry follows when it comes up.
        self._heap: list[tuple[float, str]] = []
        self._sum = 0.0  # of `finish`
        self._virtual = 0.0
        self._now = 0.0

    def __len__(self) -> int:
        """Return how many sources owe something, as of the last `take`."""
        return len(self._finish)

    def take(self, source: str, now: float) -> bool:
        """Admit one event of this source, or not."""
        if self._rate <= 0:
            return True
        self._pay(now)
        finish = self._finish
        if source not in finish and len(finish) >= self._sources_max:
            source = _REST
        known = finish.get(source)
        own = 1.0 if known is None else known - self._virtual + 1.0
        total = self._sum - len(finish) * self._virtual + 1.0
        if total > self._burst and (own > max(1.0, self._limit - total) or total > self._limit):
            return False
        self._owe(source, known)
        return True

    def _owe(self, source: str, known: float | None) -> None:
        if known is None:
            self._finish[source] = finish = self._virtual + 1.0
            self._sum += finish
            heappush(self._heap, (finish, source))
        else:
            self._finish[source] = known + 1.0
            self._sum += 1.0

    def _pay(self, now: float) -> None:
        """Let the time since the last call pay back debts; those who have paid all are forgotten."""
        heap, finish = self._heap, self._finish
        paid = (now - self._now) * self._rate
        self._now = now
        while heap:
            at, source = heap[0]
            if at != finish[source]:
                heapreplace(heap, (finish[source], source))
                continue
            needed = (at - self._virtual) * len(heap)
            if needed > paid:
                self._virtual += paid / len(heap)
                return
            paid -= needed
            self._virtual = at
            self._sum -= at
            heappop(heap)
            del finish[source]
        self._virtual = self._sum = 0.0
