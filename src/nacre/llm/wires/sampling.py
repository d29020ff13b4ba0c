"""The model of a connected MCP client, where it offers one."""

from __future__ import annotations

from collections.abc import Callable

from nacre.errors import ModelUnavailable, NacreError
from nacre.llm import failures
from nacre.llm.cancellable import Calls, CutOff
from nacre.llm.failures import CallTarget
from nacre.llm.providers import Provider
from nacre.llm.wires.schemas import system_of
from nacre.values.model_calls import Capabilities, Completion, Prompt, Tokens

Sample = Callable[[str, str, int], tuple[str, str]]
"""Asks the client: system, text, most tokens of the answer; gives back the answer and the model that gave it."""

CHARACTERS_PER_TOKEN = 4


class SamplingModel:
    """A model made of a callback; implements LanguageModel. Clients count no tokens: four characters are one."""

    def __init__(self, sample: Sample, *, client: str = "the connected client") -> None:
        self._asked = CallTarget(Provider("mcp-sampling", client, "mcp-sampling", needs_key=False), "client")
        self.name = self._asked.name
        self.capabilities = Capabilities(answers="text")
        self._sample = sample
        self._calls = Calls()

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises ModelUnavailable, also where the client or its user says no."""
        system = system_of(prompt, self.capabilities)
        text = f"{prompt.shared}\n\n{prompt.text}" if prompt.shared else prompt.text
        most = min(prompt.output_tokens, self.capabilities.output)
        try:
            said, model = self._calls.run(lambda: self._sample(system, text, most), prompt.timeout_seconds)
        except NacreError:
            raise
        except CutOff:
            raise failures.cut_off(self._asked) from None
        except TimeoutError:
            raise failures.late(self._asked, prompt.timeout_seconds) from None
        except Exception as error:  # anybody's callback: whatever it raises, there is no answer
            message = f"{self._asked.provider.label} gives no answer for {self.name}: {type(error).__name__}"
            raise ModelUnavailable(message, hint="allow sampling there, or set another model", retry=False) from error
        asked = len(system) + len(text)
        return Completion(said, Tokens(asked // CHARACTERS_PER_TOKEN, len(said) // CHARACTERS_PER_TOKEN), model)

    def close(self) -> None:
        """Cut off what runs."""
        self._calls.close()
