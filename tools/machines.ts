/** `npm run machines`: draws the state machines into their pages. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CLAIMS, PAID_CLAIMS } from './machines/claims.ts';
import { EVENTS } from './machines/events.ts';
import type { Machine } from './machines/machine.ts';

/** One for each table: what a history may do. */
export const MACHINES: readonly Machine[] = [CLAIMS, EVENTS];
/** With the part of a machine that has a page of its own. */
export const DIAGRAMS: readonly Machine[] = [...MACHINES, PAID_CLAIMS];

/** One arrow for each pair of states, with all that takes it. */
export function diagramOf({ transitions }: Machine): string {
  const labels = new Map<string, Set<string>>();
  for (const { from, to, event } of transitions) {
    const arrow = `${from ?? '[*]'} --> ${to}`;
    labels.set(arrow, (labels.get(arrow) ?? new Set()).add(event.replaceAll(':', ',')));
  }
  const arrows = [...labels].map(([arrow, events]) => `  ${arrow}: ${[...events].join(' / ')}`);
  return ['```mermaid', 'stateDiagram-v2', ...arrows, '```'].join('\n');
}

/** The page with the diagram between its marks; throws where it has no such marks. */
export function withDiagram(page: string, machine: Machine): string {
  const [start, end] = [
    `<!-- ${machine.mark ?? machine.table}: made by npm run machines -->`,
    '<!-- end -->',
  ];
  const from = page.indexOf(start);
  const to = page.indexOf(end, from);
  if (from < 0 || to < 0) throw new Error(`${machine.page} has no ${start} … ${end}`);
  return `${page.slice(0, from + start.length)}\n${diagramOf(machine)}\n${page.slice(to)}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  for (const machine of DIAGRAMS) {
    const file = join(root, machine.page);
    writeFileSync(file, withDiagram(readFileSync(file, 'utf8'), machine));
  }
}
