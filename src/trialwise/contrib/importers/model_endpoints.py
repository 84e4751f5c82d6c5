"""Endpoints of model vendors, as `chat` and `agent` services call them.

Anthropic's models are called by its own API; every other vendor here documents an endpoint with the
protocol of OpenAI.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["ENDPOINTS", "Endpoint", "find_model_endpoint"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the models of a vendor are called, and with which key."""

    base_url: str | None
    """None for the service's own default."""
    api_key_env: str | None
    api: str = "chat-completions"

    def describe_chat(self, model: str, **settings: Any) -> dict[str, Any]:
        """Return the `chat` service of a model, as a suite writes it.

        >>> ENDPOINTS["openai"].describe_chat("gpt-4o", temperature=0)
        {'chat': {'model': 'gpt-4o', 'temperature': 0}}
        """
        chat: dict[str, Any] = {"model": model}
        if self.api != "chat-completions":
            chat["api"] = self.api
        if self.base_url is not None:
            chat["base_url"] = self.base_url
        usual = "ANTHROPIC_API_KEY" if self.api == "anthropic" else "OPENAI_API_KEY"
        if self.api_key_env != usual:
            chat["api_key_env"] = self.api_key_env
        return {"chat": {**chat, **settings}}


#: The endpoints by the word that other tools use for the vendor.
ENDPOINTS = {
    "openai": Endpoint(None, "OPENAI_API_KEY"),
    "anthropic": Endpoint(None, "ANTHROPIC_API_KEY", "anthropic"),
    "google": Endpoint("https://generativelanguage.googleapis.com/v1beta/openai", "GOOGLE_API_KEY"),
    "ollama": Endpoint("http://localhost:11434/v1", None),
    "openrouter": Endpoint("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "mistral": Endpoint("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "groq": Endpoint("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "deepseek": Endpoint("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "xai": Endpoint("https://api.x.ai/v1", "XAI_API_KEY"),
    "togetherai": Endpoint("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
}

_BY_PREFIX = {
    "gpt-": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "chatgpt-": "openai",
    "claude-": "anthropic",
    "gemini-": "google",
    "models/gemini-": "google",
    **dict.fromkeys(("mistral-", "codestral-", "magistral-", "ministral-"), "mistral"),
    **dict.fromkeys(("devstral-", "pixtral-", "open-mistral-", "open-mixtral-"), "mistral"),
}


def find_model_endpoint(model: str) -> Endpoint | None:
    """Return the endpoint of a model by the beginning of its name, if it is known.

    >>> find_model_endpoint("claude-sonnet-4-5").api_key_env, find_model_endpoint("llama3")
    ('ANTHROPIC_API_KEY', None)
    """
    for prefix, vendor in _BY_PREFIX.items():
        if model.startswith(prefix):
            return ENDPOINTS[vendor]
    return None
