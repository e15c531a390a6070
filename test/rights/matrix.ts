// The rights of a database as text that people can read and compare.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Session } from '../support/sessions.ts';

type Row = { kind: string; name: string; remark: string; rights: string[] };

const COLUMNS = ['anon', 'authenticated', 'service_role', 'authenticator', 'PUBLIC'];

const HEADER = `# Who may do what. Written by \`UPDATE_GOLDEN=1\` with test/rights/matrix.test.ts; read every change before you keep it.
# r select, a insert, w update, d delete, D truncate, x references, t trigger, m maintain, U usage, C create, X execute,
# c connect, T temporary. In brackets: granted, but not to be reached by name, for want of usage on the schema.
`;

export const sqlBeside = (name: string): string =>
  readFileSync(fileURLToPath(new URL(name, import.meta.url)), 'utf8');

export async function rightsOf(session: Session): Promise<string> {
  const rows = await session.rows<Row>(sqlBeside('./matrix.sql'));
  const beside = await session.rows<{ line: string }>(sqlBeside('./beside.sql'));
  const lines = [COLUMNS, ...rows.map(({ rights }) => rights)].map((cells) =>
    cells.map((cell, at) => cell.padEnd(COLUMNS[at]?.length ?? 0)).join('  '),
  );
  const things = rows.map(({ kind, name, remark }) => `${kind} ${name}${remark && `  [${remark}]`}`);
  const table = lines.map((line, at) => `${line}  ${things[at - 1] ?? ''}`.trimEnd());
  return `${HEADER}\n${table.join('\n')}\n\n${beside.map(({ line }) => line).join('\n')}\n`;
}

/** The lines that only one of the two has, marked as in a diff; empty when they are equal. */
export function difference(expected: string, actual: string): string {
  const [before, after] = [expected, actual].map((text) => text.split('\n'));
  const gone = missingFrom(after ?? [], before ?? []).map((line) => `- ${line}`);
  const come = missingFrom(before ?? [], after ?? []).map((line) => `+ ${line}`);
  return [...gone, ...come].join('\n');
}

/** What of `lines` is not in `others`, each as often as it is missing. */
function missingFrom(others: string[], lines: string[]): string[] {
  const left = new Map<string, number>();
  for (const line of others) left.set(line, (left.get(line) ?? 0) + 1);
  return lines.filter((line) => {
    const count = left.get(line) ?? 0;
    left.set(line, count - 1);
    return count <= 0;
  });
}
