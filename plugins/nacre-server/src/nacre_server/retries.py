"""The retry strategy of jobs."""

from __future__ import annotations

from procrastinate import BaseRetryStrategy, RetryDecision
from procrastinate.jobs import Job


class Retries(BaseRetryStrategy):
    """Retries with exponential pauses.

    The pauses are ``backoff`` seconds and its powers. There are ``tries`` attempts in total, without
    limit for ``patient`` exceptions.
    """

    def __init__(self, tries: int, backoff: int, patient: tuple[type[Exception], ...]) -> None:
        self._tries = tries
        self._backoff = backoff
        self._patient = patient

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        """Return the next attempt, or ``None`` after the last one."""
        tried = job.attempts + 1
        if tried >= self._tries and not isinstance(exception, self._patient):
            return None
        return RetryDecision(retry_in={"seconds": self._backoff ** min(tried, self._tries - 1)})
