// How a control changes a function of a lane.

import type { Side } from './lanes.ts';

/** The deployed function with a piece of it replaced, wherever it stands. */
export async function change(side: Side, name: string, from: string, to: string): Promise<void> {
  const [row] = await side.rows<{ text: string }>(
    'select pg_get_functiondef(p.oid) as text from pg_proc p where p.oid = $1::regproc',
    [name],
  );
  if (!row?.text.includes(from)) throw new Error(`${name} does not contain "${from}"`);
  await side.run(row.text.replaceAll(from, () => to));
}
