// A pool that is moved to and fro by a mover that is killed at random, from a seed. By hand, for more moves than `npm test`:
//   node --import tsx test/fleet/moves.ts --moves 50 --seed 1

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createRandom } from '../../chaos/random.ts';
import type { CellAddress } from '../../src/fleet/addresses.ts';
import { startDatabases } from '../support/databases.ts';
import { contentsOf, furnishPool, query } from './support.ts';

const MOVER = fileURLToPath(new URL('mover.ts', import.meta.url));
const POOL = 'night';
const SLOTS = 5_000;
const TICKETS = 1_500;
/** Longer than a move of this pool takes, so that some movers live. */
const LONGEST_LIFE_MS = 400;

export interface MovesResult {
  moves: number;
  kills: number;
  /** How often a mover was killed after it had told each step. */
  killedAfter: Record<string, number>;
  /** Moves after which a slot, a claim, a rule or a letter was missing, doubled or changed. */
  wrong: number[];
}

/** A closed pool of thousands of slots and tickets in the first cell. */
export async function furnishLargePool({ url }: CellAddress): Promise<void> {
  await furnishPool(url, POOL);
  await query(url, 'select public.pool_change($1, $2, $3, $4)', [POOL, '{}', SLOTS, 'test']);
  await query(
    url,
    `insert into public.claims (pool_id, slot_id, user_id, state, verified)
     select m.pool_id, m.slot_id, 'holder', 'committed', true from public.slot_manifest m
     where m.pool_id = $1 and not exists (select from public.claims c where c.slot_id = m.slot_id) limit $2`,
    [POOL, TICKETS],
  );
  await query(
    url,
    `update public.inventory_slots s set status = 'CONSUMED', locked_by = c.user_id from public.claims c
     where c.slot_id = s.id and c.user_id = 'holder' and c.pool_id = $1`,
    [POOL],
  );
}

export async function moveAbout(
  cells: readonly CellAddress[],
  moves: number,
  seed: number,
  afterMove?: (cell: CellAddress) => Promise<unknown>,
): Promise<MovesResult> {
  const random = createRandom(seed);
  const result: MovesResult = { moves, kills: 0, killedAfter: {}, wrong: [] };
  const [home] = cells;
  const before = digestOf(await contentsOf(home?.url ?? '', POOL));
  let at = 0;
  for (let move = 1; move <= moves; move++) {
    const to = (at + 1) % cells.length;
    for (let isDone = false; !isDone; ) {
      const lived = await runMover(cells, cells[to]?.name ?? '', random.below(LONGEST_LIFE_MS));
      isDone = lived.isDone;
      if (isDone) continue;
      result.kills++;
      result.killedAfter[lived.lastStep] = (result.killedAfter[lived.lastStep] ?? 0) + 1;
    }
    await afterMove?.(cells[to] as CellAddress);
    const contents = await Promise.all(cells.map(({ url }) => contentsOf(url, POOL)));
    const isRight = contents.every((content, cell) =>
      cell === to
        ? digestOf(content) === before
        : content.config === null &&
          content.slots === null &&
          content.claims === null &&
          content.parcels === 0,
    );
    if (!isRight) result.wrong.push(move);
    at = to;
  }
  return result;
}

/** Killed so many milliseconds after it told its first step, unless it is done before. */
async function runMover(
  cells: readonly CellAddress[],
  to: string,
  lifeMs: number,
): Promise<{ isDone: boolean; lastStep: string }> {
  const SLUICE_CELLS = cells.map(({ name, url }) => `${name}=${url}`).join(',');
  const env = { ...process.env, SLUICE_CELLS, SLUICE_LOG: 'error' };
  const mover = spawn(process.execPath, ['--import', 'tsx', MOVER, POOL, to], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let told = '';
  let timer: NodeJS.Timeout | undefined;
  mover.stdout.on('data', (chunk: Buffer) => {
    told += chunk.toString();
    timer ??= setTimeout(() => mover.kill('SIGKILL'), lifeMs);
  });
  const [code, signal] = await once(mover, 'close');
  clearTimeout(timer);
  if (signal === null && code !== 0) throw new Error(`the mover ended with ${code}: ${told}`);
  const lines = told.trim().split('\n');
  return { isDone: /^(moved|there)$/.test(lines.at(-1) ?? ''), lastStep: lines.at(-1) ?? '' };
}

function digestOf(contents: Record<string, unknown>): string {
  return createHash('sha256').update(JSON.stringify(contents)).digest('hex');
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { moves: { type: 'string' }, seed: { type: 'string' } } });
  const databases = await Promise.all([startDatabases({ db2: false }), startDatabases({ db2: false })]);
  try {
    const cells = databases.map(({ db1 }, at) => ({ name: 'ab'[at] ?? '', url: db1.url }));
    for (const [number, { name, url }] of cells.entries())
      await query(url, 'select public.cell_join($1, $2, $3)', [name, number, 'test']);
    await furnishLargePool(cells[0] as CellAddress);
    const result = await moveAbout(cells, Number(values.moves ?? 50), Number(values.seed ?? 1));
    console.log(JSON.stringify(result));
    process.exitCode = result.wrong.length === 0 ? 0 : 1;
  } finally {
    await Promise.all(databases.map(({ stop }) => stop()));
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
