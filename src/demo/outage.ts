// An outage of the ledger. Only of the one that `npm start` runs on this machine.

import { StackError } from '../failure.ts';
import { askControl } from '../stack/control.ts';

/** Refuses where the ledger that we are connected to is not the one of the stack, whose address is `stackUrl`. */
export function refuseOtherLedger(db2Url: string, stackUrl: string | undefined): void {
  if (db2Url === stackUrl) return;
  throw new StackError(
    'the ledger is not one that `npm start` runs on this machine, so it cannot be stopped here',
    'leave out --outage, or run the demo beside `npm start`',
  );
}

/** Stops the ledger of the stack in `dir`. Returns how to end that; it ends with this process too, however that ends. */
export async function stopLedger(dir: string): Promise<() => void> {
  const { body } = await askControl(dir, 'db2', 'outage');
  return () => void body?.cancel();
}
