#!/bin/bash
# Stands in front of the CLI and notes when it was started, when its prompt was complete, and when it had exited.
# It costs a few milliseconds itself, so it is used for the breakdown and not for the comparison.
# BENCH_CLI and BENCH_LOG are filled in by breakdown.py.
if [[ ${1-} != -p ]]; then exec "BENCH_CLI" "$@"; fi
echo "spawn $EPOCHREALTIME" >> "BENCH_LOG"
{ cat; echo "prompt $EPOCHREALTIME" >> "BENCH_LOG"; } | "BENCH_CLI" "$@"
code=$?
echo "exit $EPOCHREALTIME" >> "BENCH_LOG"
exit $code
