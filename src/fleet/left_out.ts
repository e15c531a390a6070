// Which cells the answer to an operator lacks: what asks the cells for it notes those that it did without.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { CallFunction } from '#core/call_function.ts';
import { cellAway } from './away.ts';

const making = new AsyncLocalStorage<Set<string>>();

/** The answer that is being made lacks these cells. */
export function leaveOut(cells: readonly string[]): void {
  for (const name of cells) making.getStore()?.add(name);
}

/** The answer, and the names of the cells that it lacks. */
export async function withLeftOut<Answer>(
  make: () => Answer | Promise<Answer>,
): Promise<readonly [answer: Answer, leftOut: readonly string[]]> {
  const names = new Set<string>();
  return [await making.run(names, make), [...names]];
}

/** Throws where the answer lacks a cell: for what has no place to say so. */
export function wholeOnly(call: CallFunction): CallFunction {
  return async <Row>(name: string, args: Record<string, unknown>) => {
    const [rows, leftOut] = await withLeftOut(() => call<Row>(name, args));
    if (leftOut.length > 0) throw cellAway(leftOut);
    return rows;
  };
}
