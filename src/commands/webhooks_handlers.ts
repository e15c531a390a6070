// `sluice webhooks handlers`: which handler lets which events take effect, and removal of one that no worker has any more.

import { StackError } from '../failure.ts';
import { withDb2 } from './db2.ts';
import { action, type Group } from './grammar.ts';
import { actor, listAction, OPTION } from './operator.ts';
import { formatTable } from './table.ts';
import { readReason } from './values.ts';

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

const remove = action({
  about: 'Remove a handler that no worker has any more; a worker that has it registers it again',
  args: '<name>',
  options: { reason: OPTION.reason, json: OPTION.json },
  examples: ["sluice webhooks handlers remove send_receipt --reason 'moved to another service'"],
  async run({ reason, json }, [name]) {
    const by = { p_name: name, p_actor: actor(), p_reason: readReason(reason) };
    const [row] = await withDb2((db2) => db2.call<{ remove_handler: number }>('webhook.remove_handler', by));
    const removed = row?.remove_handler ?? 0;
    if (removed === 0)
      throw new StackError(`unknown handler ${name}`, '`sluice webhooks handlers list` shows them');
    console.log(
      json ? JSON.stringify({ removed }) : `${name} handles no events any more (${removed} types).`,
    );
    return 0;
  },
});

/** A row of webhook.list_handler_faults. */
interface FaultRow {
  readonly name: string;
  readonly fault: string;
  readonly since: string;
}

async function list(json: boolean): Promise<number> {
  const [handlers, disabled] = await withDb2((db2) =>
    Promise.all([
      db2.call<HandlerRow>('webhook.list_handlers', {}),
      db2.call<FaultRow>('webhook.list_handler_faults', {}),
    ]),
  );
  if (json) {
    console.log(JSON.stringify({ handlers, disabled }));
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
  for (const { name, fault } of disabled) console.log(`Disabled: ${name}: ${fault}. Its events wait.`);
  return 0;
}

export const handlers: Group = {
  about: 'Webhook handlers: list them, remove one',
  default: 'list',
  actions: {
    list: listAction(
      'List which handler lets which events take effect',
      'sluice webhooks handlers list',
      list,
    ),
    remove,
  },
};
