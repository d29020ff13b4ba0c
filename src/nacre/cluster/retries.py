"""When a job that failed is tried again."""

from __future__ import annotations

from procrastinate import BaseRetryStrategy, RetryDecision
from procrastinate.jobs import Job


class Retries(BaseRetryStrategy):
    """After ``backoff`` seconds, then after that to the power of two, of three and so on, ``tries`` in all, and without
    an end where it failed for one of the ``patient`` reasons."""

    def __init__(self, tries: int, backoff: int, patient: tuple[type[Exception], ...]) -> None:
        self._tries = tries
        self._backoff = backoff
        self._patient = patient

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        """Nothing where it is given up."""
        tried = job.attempts + 1
        if tried >= self._tries and not isinstance(exception, self._patient):
            return None
        return RetryDecision(retry_in={"seconds": self._backoff ** min(tried, self._tries - 1)})
