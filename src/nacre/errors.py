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
    """Something nacre could not do."""

    code = "failed"

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip())
        self.hint = hint

    @property
    def message(self) -> str:
        """One line that describes the problem."""
        return str(self.args[0])


class InvalidInput(NacreError):
    """What was asked makes no sense as it stands."""

    code = "invalid_input"


class SettingsInvalid(InvalidInput):
    """A setting has a value that nacre cannot use."""

    code = "settings_invalid"


class QueryInvalid(InvalidInput):
    """A query or filter cannot be understood."""

    code = "query_invalid"


class MemoryInvalid(InvalidInput):
    """A memory, or the file that should hold one, is not well formed."""

    code = "memory_invalid"


class TranscriptUnreadable(InvalidInput):
    """A transcript cannot be read."""

    code = "transcript_unreadable"


class NotFound(NacreError):
    """Nothing has that id or name."""

    code = "not_found"


class Conflict(NacreError):
    """Two writers disagree."""

    code = "conflict"


class EditConflict(Conflict):
    """A file changed since it was read; nothing was overwritten."""

    code = "edit_conflict"


class DepartedError(Conflict):
    """A later statement departs from a candidate that is to be kept."""

    code = "departed"


class OwnerOnly(NacreError):
    """What only the owner may do was asked by an agent."""

    code = "owner_only"


class NotAllowed(NacreError):
    """The role that an account has in a space does not allow it."""

    code = "not_allowed"


class Unavailable(NacreError):
    """Something nacre needs cannot be reached now."""

    code = "unavailable"


class ChannelUnavailable(Unavailable):
    """A channel's platform cannot be reached, or wants to be left alone for now."""

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
    """A channel's platform says no; trying again does not help."""

    code = "channel_refused"


class StoreBusy(Unavailable):
    """Another process holds the database."""

    code = "store_busy"


class MayBeStored(Unavailable):
    """It failed after it became durable, so it may be there in spite of the error."""

    code = "may_be_stored"


class OtherVersion(Unavailable):
    """The daemon is of another version than whoever asks."""

    code = "other_version"


class OtherSettings(Unavailable):
    """The daemon would answer by other settings than whoever asks."""

    code = "other_settings"


class Ending(Unavailable):
    """The daemon is about to end."""

    code = "ending"


class EmbedderUnavailable(Unavailable):
    """The embedding model cannot be loaded."""

    code = "embedder_unavailable"


class EmbedderHeld(EmbedderUnavailable):
    """No texts may go to the embedding model now."""

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
    """The language model does not answer now."""

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
    """Something answers that is not the language model's provider."""


class ModelUnreadable(ModelUnavailable):
    """The language model's command ended well, and wrote nothing that can be read."""


class BudgetSpent(Unavailable):
    """What models may cost is used up."""

    code = "budget_spent"


class QuotaSpent(NacreError):
    """A space was asked as often today as its quota lets. ``seconds`` are left until it may be asked again."""

    code = "quota_spent"

    def __init__(self, message: str, *, seconds: int = 1, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.seconds = seconds


class SpaceFull(NacreError):
    """A memory holds as many turns as it may."""

    code = "space_full"


class ModelRefused(NacreError):
    """The language model's provider refuses the call."""

    code = "model_refused"


class PromptTooLong(ModelRefused):
    """The language model cannot read so much at once."""

    code = "prompt_too_long"


class ModelDeclined(ModelRefused):
    """The language model read the prompt and does not want to answer it."""


class CredentialsUnusable(NacreError):
    """A key, or the file that holds it, cannot be used."""

    code = "credentials_unusable"


class AnswerUnusable(NacreError):
    """The language model did not answer what it was asked for."""

    code = "answer_unusable"


class StoreUnusable(NacreError):
    """The home cannot be used as it is."""

    code = "store_unusable"


class StoreAway(StoreUnusable):
    """The server that holds the memory, or the node of it that does, does not answer now, or lets nobody in."""

    code = "store_away"


class SchemaTooNew(StoreUnusable):
    """The database was written by a newer nacre."""

    code = "schema_too_new"


class VaultUnusable(StoreUnusable):
    """The vault cannot be read or written."""

    code = "vault_unusable"


class ArchiveDamaged(NacreError):
    """A part of the archive of transcripts cannot be read."""

    code = "archive_damaged"


class GitUnavailable(Unavailable):
    """The git program is missing, too old, or does not answer."""

    code = "git_unavailable"


class RepositoryBusy(Unavailable):
    """Another git works on the vault's repository."""

    code = "repository_busy"


class RepositoryUnusable(StoreUnusable):
    """The vault's repository cannot take a commit as it is."""

    code = "repository_unusable"


class RemoteUnreachable(Unavailable):
    """The remote cannot be reached now."""

    code = "remote_unreachable"


class RemoteRefused(NacreError):
    """The remote says no."""

    code = "remote_refused"


class RemoteMoved(Conflict):
    """The remote's branch moved since it was fetched."""

    code = "remote_moved"


class HistoryRewritten(Conflict):
    """Somebody rewrote the remote's history."""

    code = "history_rewritten"


class Fault(NacreError):
    """nacre is to blame."""

    code = "internal"


class SecretFound(NacreError):
    """What was to be sent holds what looks like a secret."""

    code = "secret_found"
