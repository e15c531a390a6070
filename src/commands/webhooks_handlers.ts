// `sluice webhooks handlers`: who lets which events take effect, and away with one that nobody serves any more.

import { parseArgs } from 'node:util';
import { StackError } from '../failure.ts';
import { withDb2 } from './db2.ts';
import { actor } from './operator.ts';
import { formatTable } from './table.ts';
import { UsageError } from './usage_error.ts';
import { readText } from './webhooks_filter.ts';

/** A row of public.webhook_handlers. */
interface HandlerRow {
  readonly provider: string;
  /** A type, or a prefix that ends in `*`. */
  readonly event_type: string;
  /** Null: of every endpoint. */
  readonly webhook_id: string | null;
  readonly kind: 'sql' | 'typescript';
  readonly name: string;
}

export async function run(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    options: { reason: { type: 'string' }, json: { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  const [action = 'list', name, ...rest] = positionals;
  if (action === 'list') return list(values.json);
  if (action !== 'remove') throw new UsageError(`handlers cannot ${action}`);
  if (name === undefined || rest.length > 0) throw new UsageError('remove needs the name of one handler');
  const reason = values.reason === undefined ? null : readText('--reason', values.reason);
  const by = { p_name: name, p_actor: actor(), p_reason: reason };
  const [row] = await withDb2((db2) => db2.call<{ remove_handler: number }>('webhook.remove_handler', by));
  const removed = row?.remove_handler ?? 0;
  if (removed === 0)
    throw new StackError(`there is no handler ${name}`, '`sluice webhooks handlers list` shows them');
  console.log(
    values.json ? JSON.stringify({ removed }) : `${name} handles no events any more (${removed} types).`,
  );
  return 0;
}

async function list(asJson: boolean): Promise<number> {
  const handlers = await withDb2((db2) => db2.call<HandlerRow>('webhook.list_handlers', {}));
  if (asJson) {
    console.log(JSON.stringify({ handlers }));
    return 0;
  }
  const rows = handlers.map(({ provider, event_type, kind, name, webhook_id }) => [
    provider,
    event_type,
    kind,
    name,
    webhook_id ?? 'any',
  ]);
  console.log(formatTable(['PROVIDER', 'TYPE', 'KIND', 'NAME', 'WEBHOOK ID'], rows));
  return 0;
}
