"""The errors that nacre raises.

NacreError
├── InvalidInput            the caller can fix it: SettingsInvalid, QueryInvalid, MemoryInvalid, TranscriptUnreadable
├── NotFound                nothing has that id or name
├── Conflict                two writers disagree: EditConflict, RemoteMoved, HistoryRewritten
├── OwnerOnly               an agent called an operation of the owner
├── NotAllowed              the role that an account has in a space does not allow it
├── Unavailable             try again, or degrade: StoreBusy, EmbedderUnavailable (EmbedderHeld), GitUnavailable,
│                           RepositoryBusy, RemoteUnreachable, ModelUnavailable (UnexpectedService,
│                           ModelUnreadable), BudgetSpent, ChannelUnavailable
├── ChannelRefused          a channel's platform refuses; trying again does not help
├── ModelRefused            the model's provider refuses; trying again does not help: PromptTooLong, ModelDeclined
├── CredentialsUnusable     a file with credentials cannot be read, or the key is of another kind
├── AnswerUnusable          a model's answer has the wrong form
├── RemoteRefused           the remote refuses; SecretFound: nacre refuses
├── Fault                   a bug in nacre
└── StoreUnusable           the home needs a repair or upgrade: SchemaTooNew, VaultUnusable, RepositoryUnusable

An error has a message and a hint for the user. Each interface maps errors to its own exit codes or HTTP statuses.
A class's docstring is its default message.
"""

from __future__ import annotations


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


class InvalidInput(NacreError):
    """The request is not valid."""

    code = "invalid_input"


class SettingsInvalid(InvalidInput):
    """A setting has a value that nacre cannot use."""

    code = "settings_invalid"


class QueryInvalid(InvalidInput):
    """The query or filter is not valid."""

    code = "query_invalid"


class MemoryInvalid(InvalidInput):
    """The memory or its file is not well-formed."""

    code = "memory_invalid"


class TranscriptUnreadable(InvalidInput):
    """A transcript cannot be read."""

    code = "transcript_unreadable"


class NotFound(NacreError):
    """There is nothing with this id or name."""

    code = "not_found"


class Conflict(NacreError):
    """The request conflicts with the present state."""

    code = "conflict"


class EditConflict(Conflict):
    """The file changed after it was read; nothing was overwritten."""

    code = "edit_conflict"


class DepartedError(Conflict):
    """A later statement contradicts this candidate."""

    code = "departed"


class OwnerOnly(NacreError):
    """Only the owner may do this; an agent asked for it."""

    code = "owner_only"


class NotAllowed(NacreError):
    """The account's role in this space does not allow this."""

    code = "not_allowed"


class Unavailable(NacreError):
    """Something that nacre needs is unavailable."""

    code = "unavailable"


class ChannelUnavailable(Unavailable):
    """The channel's platform cannot be reached, or asks to wait."""

    code = "channel_unavailable"

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        """``retry_after``: seconds to wait, as requested by the platform."""
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class ChannelRefused(NacreError):
    """The channel's platform refused; a retry does not help."""

    code = "channel_refused"


class StoreBusy(Unavailable):
    """Another process is using the database."""

    code = "store_busy"


class MayBeStored(Unavailable):
    """The change may have been stored despite this error."""

    code = "may_be_stored"


class OtherVersion(Unavailable):
    """The daemon has a different version from the caller."""

    code = "other_version"


class OtherSettings(Unavailable):
    """The daemon has different settings from the caller."""

    code = "other_settings"


class Ending(Unavailable):
    """The daemon is shutting down."""

    code = "ending"


class EmbedderUnavailable(Unavailable):
    """The embedding model cannot be loaded."""

    code = "embedder_unavailable"


class EmbedderHeld(EmbedderUnavailable):
    """Texts may not be sent to the embedding model now."""

    code = "embedder_held"

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str | None = None,
        reason: str = "no yes",
        for_less: bool = False,
    ) -> None:
        """``reason`` is ``no yes``, or as in a refusal of models; ``for_less``: fewer texts may be permitted."""
        super().__init__(message, hint=hint)
        self.reason = reason
        self.for_less = for_less


class RerankerUnavailable(Unavailable):
    """The reranker cannot be loaded."""

    code = "reranker_unavailable"


class ModelUnavailable(Unavailable):
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
        """``retry``: a retry may help. ``after_seconds``: wait requested by the provider. ``may_cost``: the
        model may have started on the request, which is billed.
        """
        super().__init__(message, hint=hint)
        self.retry = retry
        self.after_seconds = after_seconds
        self.may_cost = may_cost


class UnexpectedService(ModelUnavailable):
    """The response did not come from the language model's provider."""


class ModelUnreadable(ModelUnavailable):
    """The language model's command succeeded without readable output."""


class BudgetSpent(Unavailable):
    """The budget for models is used up."""

    code = "budget_spent"


class QuotaSpent(NacreError):
    """A space has used its daily quota of requests. ``seconds``: time until the next request is allowed."""

    code = "quota_spent"

    def __init__(self, message: str, *, seconds: int = 1, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.seconds = seconds


class SpaceFull(NacreError):
    """The space has reached its maximum number of turns."""

    code = "space_full"


class ModelRefused(NacreError):
    """The language model's provider refused the call."""

    code = "model_refused"


class PromptTooLong(ModelRefused):
    """The prompt is too long for the language model."""

    code = "prompt_too_long"


class ModelDeclined(ModelRefused):
    """The language model declined to answer the prompt."""


class CredentialsUnusable(NacreError):
    """A key or its file cannot be used."""

    code = "credentials_unusable"


class AnswerUnusable(NacreError):
    """The language model's answer cannot be used."""

    code = "answer_unusable"


class StoreUnusable(NacreError):
    """The home needs a repair or an upgrade."""

    code = "store_unusable"


class StoreAway(StoreUnusable):
    """The database server, or the node with this memory, does not respond or refuses the connection."""

    code = "store_away"


class SchemaTooNew(StoreUnusable):
    """The database was written by a newer nacre."""

    code = "schema_too_new"


class VaultUnusable(StoreUnusable):
    """The vault cannot be read or written."""

    code = "vault_unusable"


class ArchiveDamaged(NacreError):
    """A part of the transcript archive cannot be read."""

    code = "archive_damaged"


class GitUnavailable(Unavailable):
    """git is missing, too old, or does not respond."""

    code = "git_unavailable"


class RepositoryBusy(Unavailable):
    """Another git process is using the vault's repository."""

    code = "repository_busy"


class RepositoryUnusable(StoreUnusable):
    """The vault's repository is in a state that does not allow commits."""

    code = "repository_unusable"


class RemoteUnreachable(Unavailable):
    """The remote cannot be reached now."""

    code = "remote_unreachable"


class RemoteRefused(NacreError):
    """The remote refused the request."""

    code = "remote_refused"


class RemoteMoved(Conflict):
    """The remote's branch has changed since the last fetch."""

    code = "remote_moved"


class HistoryRewritten(Conflict):
    """The remote's history was rewritten."""

    code = "history_rewritten"


class Fault(NacreError):
    """An internal error in nacre."""

    code = "internal"


class SecretFound(NacreError):
    """The text to send contains what looks like a secret."""

    code = "secret_found"
