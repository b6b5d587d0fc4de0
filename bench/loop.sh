#!/bin/bash
# The least a person would write instead of opsladder: climb three tiers in one conversation, and print for each whether
# escalation is needed and what the CLI says it cost. No records, no limits, no recovery.
# usage: loop.sh CLAUDE DIRECTORY, with the flags (each ended by a zero byte) and the prompt of each tier in DIRECTORY.
set -euo pipefail
claude=$1
directory=$2
session=()
for tier in 1 2 3; do
  mapfile -d '' -t flags < "$directory/flags-$tier"
  read -r id < /proc/sys/kernel/random/uuid
  said=$("$claude" "${flags[@]}" "${session[@]}" --session-id "$id" < "$directory/prompt-$tier" |
    jq -r 'select(.type == "result") | "\(.structured_output.escalation.needed) \(.total_cost_usd)"')
  echo "$tier $said"
  [[ $said == true* ]] || break
  session=(--resume "$id" --fork-session)
done
