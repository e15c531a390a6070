import { createOperatorStore, type OperatorStore } from '#core/webhook/operators.ts';
import { withDb2 } from './db2.ts';

/** What operators do with endpoints and events, on DB2 itself. */
export function withStore<Result>(work: (store: OperatorStore) => Promise<Result>): Promise<Result> {
  return withDb2((db2) => work(createOperatorStore((name, args) => db2.call(`webhook.${name}`, args))));
}
