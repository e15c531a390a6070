#!/usr/bin/env bash
# Lets stored webhook events go round again: a thin front of `sluice webhooks replay`, which holds all the rules. Works from
# any folder, also by way of a link.
#
#   tools/webhook_replay.sh --event-id evt_123 --reason 'handler mended'
#   tools/webhook_replay.sh --webhook-id UUID --since 2026-02-24 --limit 5000 --dry-run
#
# Options: --webhook-id --event-id --provider --since --until --limit --dry-run --yes --reason --idempotency-key --json
# Environment: DB2_URL, else DATABASE_URL, else the stack in this checkout's .sluice; SLUICE_OPERATOR_KEY for your name in the audit log.
# Exit code: 0 when all were replayed, 1 when some were not, 2 when the call was not understood.
set -euo pipefail

root="$(dirname -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")")"
export SLUICE_DIR="${SLUICE_DIR:-$root/.sluice}"

exec node "$root/bin/sluice.js" webhooks replay "$@"
