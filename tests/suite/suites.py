"""Suites that between them use every key, for whoever checks all of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

#: Loadable as it is, without a file beside it.
WHOLE: dict[str, Any] = {
    "services": {
        "echo": {"command": ["echo", "{input}"]},
        "cat": {
            "command": {
                "run": "cat",
                "input_via": "stdin",
                "parse_json": True,
                "strip_newline": False,
                "cwd": ".",
                "env": {"A": "b ${HOME:-x}"},
                "inherit_env": False,
                "output_limit": 1000,
                "stderr_limit": 0,
                "grace": "1s",
            }
        },
        "web": {
            "http": {
                "url": "http://localhost:1/",
                "method": "POST",
                "headers": {"X-A": "1"},
                "body": {"q": "{input}"},
                "extract": "/a",
                "infrastructure_statuses": [500],
                "timeout": "5s",
                "connect_timeout": "1s",
                "response_limit": 100,
            }
        },
        "model": {
            "chat": {
                "model": "m",
                "base_url": "http://localhost:1/v1",
                "api_key_env": None,
                "system": "s",
                "temperature": 0.5,
                "max_tokens": 5,
                "tools": [{"type": "function"}],
                "extra": {"top_p": 1},
                "send_seed": True,
                "prices": {"input": "$1", "output": 2},
            }
        },
        "tools": {
            "agent": {
                "model": "m",
                "base_url": "http://localhost:1/v1",
                "api_key_env": None,
                "servers": {
                    "a": {"command": "cat", "env": {"A": "b"}, "inherit_env": True, "cwd": "."},
                    "b": {"url": "http://localhost:1/", "headers": {"X": "1"}, "tools": ["t"]},
                },
                "max_turns": 5,
                "max_tool_calls": 0,
                "tool_timeout": "5s",
                "start_timeout": "5s",
                "result_limit": 100,
                "timeout": "1m",
            }
        },
        "function": {"python": {"function": "json:dumps", "in_thread": False}},
    },
    "intent": "smoke",
    "rule": "exact",
    "analysis": "intent-to-treat",
    "max_trials": 100,
    "seed": 1,
    "draw": "balanced",
    "concurrency": 2,
    "rate": "5/s",
    "timeout": "2m",
    "retries": 1,
    "budget": {"trials": 10, "time": "1h", "tokens": 5, "money": "$2"},
    "abort": {"max_error_rate": "20%", "after": 5, "to": "fail"},
    "curtail": False,
    "claim": {
        "population": "superpopulation",
        "name": "p",
        "representativeness": "r",
        "estimand": "call-weighted",
        "estimator": "prompts",
    },
    "covariates": ["weekday", {"name": "a", "value": "b", "critical": True}],
    "factors": {"model": "m", "temperature": 0.5},
    "latency": {"p95": "2s", "baseline": ["p99"], "enforced": True, "confidence": 0.9},
    "prevalence": {"rate": 0.1, "confidence": "95%", "source": "pre-guardrail", "evidence": "e"},
    "activity": "json:dumps",
    "before_each": "gc:get_count",
    "baseline": "b",
    "overrides": ["X"],
    "horizon": 5,
    "tags": ["t"],
    "inputs": ["a", 5, {"value": {"b": 1}, "id": "c", "stratum": "s", "repetitions": 2}],
    "criteria": [
        {
            "name": "a",
            "at_least": "90%",
            "contains": "x",
            "margin": 0.05,
            "confidence": "99%",
            "power": 0.9,
            "origin": "SLO",
            "ref": "r",
            "class": "SAFETY",
            "each_input": True,
        },
        {
            "name": "b",
            "never_fails": True,
            "min_probes": 5,
            "postconditions": [
                {"any_of": [{"not": {"contains": {"text": ["a"], "min": 1}}}, {"parses": "json"}]},
                {"named": {"name": "n", "check": {"equals": {"a": 1}}}},
                {"max_latency": "1s"},
                {"tool_called_with": {"tool": "t", "expression": "true", "require": "all"}},
                {"final_answer": {"contains": ["a"], "matches": "b", "ignore_case": True}},
                {"max_turns": 5},
                {"max_repeated_failures": 0},
                {"max_cost": 0.5},
                {"python": "json:loads"},
            ],
        },
        {"name": "c", "no_worse_than": "baseline", "length": {"max": 5}},
    ],
    "contracts": [
        {
            "name": "one",
            "service": "echo",
            "description": "d",
            "arms": {
                "loud": {"service": {"command": {"env": {"A": "c"}, "grace": "2s"}}},
                "other": {
                    "service": "cat",
                    "factors": {"prompt": 2},
                    "before_each": "gc:get_count",
                    "description": "e",
                },
            },
        },
        {
            "name": "two",
            "service": "cat",
            "trials": {"red": 5},
            "samplings": {"red": {"inputs": ["x"], "role": "red-team", "version": "1"}},
        },
        {"name": "three", "service": "web"},
        {"name": "four", "service": "model"},
        {"name": "five", "service": "function"},
        {"name": "six", "service": {"command": "echo {input}"}, "trials": 5},
        {"name": "seven", "service": "tools"},
    ],
    "compare": {
        "control": "one",
        "candidates": ["one/loud"],
        "question": "not-worse",
        "margin": "2%",
        "guardrails": {"b": 0.01},
        "expect": ["80%", 0.9],
        "max_trials": 500,
        "confidence": "90%",
        "correction": "bh",
        "all_pairs": True,
    },
    "reports": {"html": "r.html", "json": "r.json", "junit": "j.xml", "md": "r.md", "tap": "t"},
    "store": {"runs": "runs", "baselines": "b"},
    "redact": ["[0-9]+"],
}
SHORT: dict[str, Any] = {
    "service": {"command": ["echo", "{input}"]},
    "inputs": ["a"],
    "criteria": [{"name": "c", "contains": "x", "at_least": 0.9}],
}


def documented() -> list[str]:
    """The suites that documents and examples show."""
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    blocks = [
        block
        for page in pages
        if "_build" not in page.parts
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        # A page on moving from another tool shows that tool's file, too.
        if "criteria:" in block and not block.startswith("format: mavai-")
    ]
    files = [*ROOT.glob("examples/**/trialwise.y*ml")]
    return blocks + [file.read_text(encoding="utf-8") for file in files]
