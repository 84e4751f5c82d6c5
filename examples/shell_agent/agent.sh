#!/bin/sh
# An agent in POSIX shell that looks up a capital and answers with it. It writes each step of its
# session into the file that TRIALWISE_TRACE_FILE names, one event on each line.

tell() { printf '%s\n' "$1" >> "$TRIALWISE_TRACE_FILE"; }

country=$1
# One time in twenty the agent looks twice: its seed decides, so that a run can be repeated.
lookups=1
[ $((TRIALWISE_SEED % 20)) -eq 0 ] && lookups=2

tell "{\"role\": \"user\", \"content\": \"$country\"}"
while [ "$lookups" -gt 0 ]; do
  tell "{\"type\": \"tool_call\", \"id\": \"$lookups\", \"name\": \"look_up\", \"args\": {\"country\": \"$country\"}}"
  case $country in
    France) capital=Paris ;;
    Japan) capital=Tokyo ;;
    *) capital=unknown ;;
  esac
  tell "{\"type\": \"tool_result\", \"id\": \"$lookups\", \"result\": \"$capital\"}"
  lookups=$((lookups - 1))
done
tell '{"type": "token_usage", "input_tokens": 120, "output_tokens": 15, "cost_usd": 0.0004}'
tell "{\"role\": \"assistant\", \"content\": \"$capital\"}"
echo "$capital"
