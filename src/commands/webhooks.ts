// `sluice webhooks`: endpoints, stored events, and help with signatures.

import type { Command } from './command.ts';
import { UsageError } from './usage_error.ts';
import { run as endpoints } from './webhooks_endpoints.ts';
import { list, prune, show } from './webhooks_events.ts';
import { run as handlers } from './webhooks_handlers.ts';
import { run as replayOrSkip } from './webhooks_replay.ts';
import { run as send, usage as sendUsage } from './webhooks_send.ts';
import { run as verify, usage as verifyUsage } from './webhooks_verify.ts';

const usage = `sluice webhooks <action> [options]

  endpoints list                    where providers deliver to
  endpoints add <name>              a new one: --provider P --secret-name ENV_NAME
  endpoints rotate <name>           --secret-name NEW goes first, the old ones stay good; with --only they do not
  endpoints change <name>           other settings
  endpoints disable|enable <name>   deliveries are answered 404 within a second, or taken again
  handlers list                     who lets which events take effect
  handlers remove <name>            one that nobody serves any more; a worker that has it registers it again
  list                              stored events, newest first, without their payloads
  show <id> …                       all that is known about some; our id or the provider's
  replay [id …]                     let failed and dead-lettered events go round again
  skip [id …]                       set them aside: they will not be tried again
  prune                             remove old payloads; the keys that catch duplicates stay
  send <provider> <type>            sign a sample event and post it
  verify <provider>                 is this request signed as it should be, and if not why

Filters of list, replay and skip (without --status, replay and skip take failed and dead_letter; with --event-id, any):
  --webhook-id UUID    of this endpoint
  --event-id ID        with this id of the provider
  --provider NAME      of this provider
  --status LIST        pending, processing, success, skipped, failed, dead_letter; commas between
  --since, --until T   received in this time: 2026-02-24 or 2026-02-24T10:00:00Z
  --limit N            at most so many (default 100): of list the newest, of replay and skip the oldest

Options of replay and skip:
  --dry-run            say what would be done
  --yes                do not ask; needed where there is no terminal, unless one event is named
  --reason TEXT        why, for the audit log
  --idempotency-key K  replay of one event: its handler passes K on instead of its own key

Options of endpoints add and change:
  --mode M             queued (default) or inline
  --secret-name NAME   a name in the environment, never the secret; again for each, newest first
  --verify-token-name NAME, --public-url URL, --scheme-file FILE
  --max-attempts N, --backoff-cap-sec N, --lease-sec N, --max-body-bytes N, --keep-payload-days N
  --reason TEXT        why, for the audit log

Options of prune:
  --days N             payloads of ended events older than this (default: what each endpoint says); --yes as above

Every action takes --json, for machines.

Environment:
  DB2_URL              the ledger (default: DATABASE_URL, then the stack in .sluice)
  SLUICE_OPERATOR      who you are, for the audit log (default: $USER)

Exit code: 0 when all is done, 1 when some event was not, 2 when the call was not understood.

Examples:
  sluice webhooks endpoints add stripe-eu --provider stripe --secret-name STRIPE_EU_SECRET --mode inline
  sluice webhooks list --status dead_letter --since 2026-02-24
  sluice webhooks replay --event-id evt_1NG8Du2eZvKYlo2C --reason 'handler mended'
  sluice webhooks replay --provider stripe --since 2026-02-24 --limit 5000 --yes --json

${sendUsage}
${verifyUsage}`;

const ACTIONS: Readonly<Record<string, (args: string[]) => Promise<number>>> = {
  endpoints,
  handlers,
  list,
  show,
  replay: (args) => replayOrSkip('replay', args),
  skip: (args) => replayOrSkip('skip', args),
  prune,
  send,
  verify,
};

async function run([action, ...args]: string[]): Promise<number> {
  if (action === undefined) throw new UsageError('say what to do');
  const act = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
  if (act === undefined) throw new UsageError(`webhooks cannot ${action}`);
  return act(args);
}

export const webhooks: Command = { summary: 'endpoints, stored events, replay, signatures', usage, run };
