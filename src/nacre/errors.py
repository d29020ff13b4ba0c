"""The errors that nacre raises.

NacreError
├── InvalidInputError        invalid settings, queries, memories or transcripts; the caller can fix them
├── NotFoundError            there is nothing with that id or name
├── ConflictError            conflicting edits, a changed remote, or a rewritten history
├── OwnerOnlyError           an agent called an operation reserved for the owner
├── NotAllowedError          an account's role in a space does not allow the operation
├── UnavailableError         a busy store, a missing model or remote, or a spent budget; a retry can help
├── ChannelRefusedError      a channel's platform refuses; a retry does not help
├── ModelRefusedError        a model's provider refuses; a retry does not help
├── UnusableCredentialsError a file with credentials is unreadable, or a key has the wrong type
├── UnusableAnswerError      a model's answer has the wrong form
├── RemoteRefusedError       the remote refuses
├── SecretFoundError         nacre refuses to store or send a secret
├── InternalError            a bug in nacre
└── UnusableStoreError       the home needs a repair or upgrade

An error has a message and a hint for the user. Each interface maps errors to exit codes or HTTP
statuses. A class's docstring is its default message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class NacreError(Exception):
    """The operation failed."""

    code = "failed"

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip())
        self.hint = hint

    @property
    def message(self) -> str:
        """One line that describes the problem."""
        return str(self.args[0])

    @property
    def with_hint(self) -> str:
        """The message with the hint, if any, in parentheses."""
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InvalidInputError(NacreError):
    """The request is not valid."""

    code = "invalid_input"


class InvalidSettingsError(InvalidInputError):
    """A setting has a value that nacre cannot use."""

    code = "settings_invalid"


class InvalidQueryError(InvalidInputError):
    """The query or filter is not valid."""

    code = "query_invalid"


class InvalidMemoryError(InvalidInputError):
    """The memory or its file is not well-formed."""

    code = "memory_invalid"


class UnreadableTranscriptError(InvalidInputError):
    """A transcript cannot be read."""

    code = "transcript_unreadable"


class NotFoundError(NacreError):
    """There is nothing with this id or name."""

    code = "not_found"


class ConflictError(NacreError):
    """The request conflicts with the present state."""

    code = "conflict"


class EditConflictError(ConflictError):
    """The file changed after it was read; nothing was overwritten."""

    code = "edit_conflict"


class DepartedError(ConflictError):
    """A later statement contradicts this candidate."""

    code = "departed"


class OwnerOnlyError(NacreError):
    """Only the owner may do this, not an agent."""

    code = "owner_only"


class NotAllowedError(NacreError):
    """The account's role in this space does not allow this."""

    code = "not_allowed"


class UnavailableError(NacreError):
    """Something that nacre needs is unavailable."""

    code = "unavailable"


class ChannelUnavailableError(UnavailableError):
    """The channel's platform cannot be reached, or asks to wait."""

    code = "channel_unavailable"

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        """Set ``retry_after``, the seconds to wait before a retry."""
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class ChannelRefusedError(NacreError):
    """The channel's platform refused the request; a retry does not help."""

    code = "channel_refused"


class DiskFullError(UnavailableError):
    """The disk is full."""

    code = "disk_full"


class StoreBusyError(UnavailableError):
    """Another process is using the database."""

    code = "store_busy"


class MayBeStoredError(UnavailableError):
    """The change might have been stored despite this error."""

    code = "may_be_stored"


class VersionMismatchError(UnavailableError):
    """The daemon has a different version from the caller."""

    code = "other_version"


class SettingsMismatchError(UnavailableError):
    """The daemon has different settings from the caller."""

    code = "other_settings"


class ShuttingDownError(UnavailableError):
    """The daemon is shutting down."""

    code = "ending"


class EmbedderUnavailableError(UnavailableError):
    """The embedding model cannot be loaded."""

    code = "embedder_unavailable"


class EmbedderHeldError(EmbedderUnavailableError):
    """Sending texts to the embedding model is currently not allowed."""

    code = "embedder_held"

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str | None = None,
        reason: str = "no yes",
    ) -> None:
        """``reason`` is ``no yes`` (the user has not agreed), ``no price`` or ``budget``.

        With ``budget``, fewer texts might be allowed.
        """
        super().__init__(message, hint=hint)
        self.reason = reason


class ModelUnavailableError(UnavailableError):
    """The language model does not respond."""

    code = "model_unavailable"

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str | None = None,
        retry: bool = True,
        after_seconds: float | None = None,
        may_cost: bool = True,
    ) -> None:
        """``may_cost`` is True if the provider might charge for the failed call."""
        super().__init__(message, hint=hint)
        self.retry = retry
        self.after_seconds = after_seconds
        self.may_cost = may_cost


class UnexpectedServiceError(ModelUnavailableError):
    """The response did not come from the language model's provider."""


class UnreadableModelError(ModelUnavailableError):
    """The language model's command returned no readable output."""


class BudgetSpentError(UnavailableError):
    """The budget for models is used up."""

    code = "budget_spent"


class ModelRefusedError(NacreError):
    """The language model's provider refused the call."""

    code = "model_refused"


class PromptTooLongError(ModelRefusedError):
    """The prompt is too long for the language model."""

    code = "prompt_too_long"


class ModelDeclinedError(ModelRefusedError):
    """The language model declined to answer the prompt."""


class UnusableCredentialsError(NacreError):
    """A key or its file cannot be used."""

    code = "credentials_unusable"


class UnusableAnswerError(NacreError):
    """The language model's answer cannot be used."""

    code = "answer_unusable"


class UnusableStoreError(NacreError):
    """The home needs a repair or an upgrade."""

    code = "store_unusable"


class MissingStoreError(UnusableStoreError):
    """The database server cannot be reached."""

    code = "store_away"


class SchemaTooNewError(UnusableStoreError):
    """The database was written by a newer nacre."""

    code = "schema_too_new"


class UnusableVaultError(UnusableStoreError):
    """The vault cannot be read or written."""

    code = "vault_unusable"


class DamagedArchiveError(NacreError):
    """A part of the transcript archive cannot be read."""

    code = "archive_damaged"


class GitUnavailableError(UnavailableError):
    """git is missing, too old, or does not respond."""

    code = "git_unavailable"


class RepositoryBusyError(UnavailableError):
    """Another git process is using the vault's repository."""

    code = "repository_busy"


class UnusableRepositoryError(UnusableStoreError):
    """The vault's repository is in a state that does not allow commits."""

    code = "repository_unusable"


class RemoteUnreachableError(UnavailableError):
    """The remote cannot be reached now."""

    code = "remote_unreachable"


class RemoteRefusedError(NacreError):
    """The remote refused the request."""

    code = "remote_refused"


class RemoteMovedError(ConflictError):
    """The remote's branch has changed since the last fetch."""

    code = "remote_moved"


class HistoryRewrittenError(ConflictError):
    """The remote's history was rewritten."""

    code = "history_rewritten"


class InternalError(NacreError):
    """An internal error in nacre."""

    code = "internal"


class SecretFoundError(NacreError):
    """The text to send seems to contain a secret."""

    code = "secret_found"


def refuse_several(ids: Iterable[str], reference: str, kind: str) -> None:
    """Raise ConflictError if a reference matches more than one id."""
    names = [*ids]
    if len(names) > 1:
        raise ConflictError(
            f"{reference!r} matches several {kind}: {', '.join(names)}",
            hint="give more characters of the id",
        )
