// The quorum suite: what it costs that an answer waits for a standby. Two servers on one database with one standby, one that
// acknowledges what the primary has (SLUICE_ACK local), one that waits for the standby (quorum); the rounds take turns.

import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Process, SERVER_READY } from '../chaos/process.ts';
import { withClient } from '../src/migrate/sql.ts';
import { cleanUpOnExit, startDatabases } from '../test/support/databases.ts';
import { startPair } from '../test/support/standby.ts';
import { claimInTurn } from './cells/buyers.ts';
import { readSettings } from './durability.ts';
import { type Column, makeTable } from './rows.ts';
import { KEYS } from './servers.ts';
import { median, quantile } from './stats.ts';
import type { AnyRow, Suite } from './suite.ts';

const FULL = {
  rounds: 7,
  sizes: [
    { buyers: 1, claims: 300 },
    { buyers: 64, claims: 6_000 },
  ],
};
/** Shows that every part runs. */
const QUICK: Plan = { rounds: 1, sizes: [{ buyers: 4, claims: 40 }] };
type Plan = typeof FULL;
type Size = Plan['sizes'][number];

const POOL = 'cell';
const ACKS = ['local', 'quorum'] as const;
type Ack = (typeof ACKS)[number];
/** A claim writes; the same request once more does not. */
const KINDS = ['claim', 'same'] as const;

interface Sample {
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
}

const number = (heading: string, name: string, digits = 0): Column<AnyRow> => ({
  heading,
  text: ({ [name]: value }) => Number(value).toFixed(digits),
});
const COLUMNS: Column<AnyRow>[] = [
  { heading: 'row', isText: true, text: ({ name }) => name },
  number('buyers', 'clients'),
  number('rate', 'rate'),
  number('p50 ms', 'p50_ms', 1),
  number('p99 ms', 'p99_ms', 1),
  number('of local', 'of_local', 2),
];

export const quorum: Suite = {
  summary: 'claims that wait for a standby against claims that do not, and repeated ones that write nothing',
  run({ quick, progress }) {
    const plan = quick ? QUICK : FULL;
    return withServers(plan, async (servers, settings) => {
      const taken = new Map<string, Sample[]>();
      for (const ack of ACKS) for (const size of plan.sizes) await round(servers[ack], size);
      for (let turn = 1; turn <= plan.rounds; turn++) {
        progress(`round ${turn} of ${plan.rounds}`);
        // The order changes from round to round: whatever drifts, drifts for both.
        for (const size of plan.sizes)
          for (const ack of turn % 2 === 0 ? [...ACKS].reverse() : ACKS)
            for (const [kind, sample] of await round(servers[ack], size)) {
              const name = nameOf(kind, ack, size);
              taken.set(name, [...(taken.get(name) ?? []), sample]);
            }
      }
      const rows = plan.sizes.flatMap((size) =>
        KINDS.flatMap((kind) =>
          ACKS.map((ack) => {
            const rate = (of: Ack) =>
              median((taken.get(nameOf(kind, of, size)) ?? []).map((one) => one.rate));
            const own = taken.get(nameOf(kind, ack, size)) ?? [];
            return {
              name: `${kind} ${ack}`,
              clients: size.buyers,
              rate: rate(ack),
              p50_ms: median(own.map(({ p50 }) => p50)),
              p99_ms: median(own.map(({ p99 }) => p99)),
              of_local: rate(ack) / rate('local'),
            };
          }),
        ),
      );
      return { settings, rows, demands: [] };
    });
  },
  table: (rows) => makeTable(COLUMNS, rows),
};

const nameOf = (kind: string, ack: Ack, { buyers }: Size): string => `${kind} ${ack} ${buyers}`;

/** Claims, and the same requests once more. */
async function round(server: Process, { buyers, claims }: Size): Promise<[string, Sample][]> {
  const ids = Array.from({ length: claims }, () => randomUUID());
  const samples: [string, Sample][] = [];
  for (const kind of KINDS) {
    const startMs = performance.now();
    const tookMs = (await claimInTurn(server.port, [POOL], claims, buyers, ids)).sort((a, b) => a - b);
    const rate = (claims * 1_000) / (performance.now() - startMs);
    samples.push([kind, { rate, p50: quantile(tookMs, 0.5), p99: quantile(tookMs, 0.99) }]);
  }
  return samples;
}

async function withServers<T>(
  { rounds, sizes }: Plan,
  use: (servers: Readonly<Record<Ack, Process>>, settings: Record<string, string>) => Promise<T>,
): Promise<T> {
  const logDir = mkdtempSync(join(tmpdir(), 'sluice-bench-quorum-'));
  const ledger = await startDatabases({ db1: false });
  const pair = await startPair('db1');
  const servers = Object.fromEntries(
    ACKS.map((ack) => [ack, serverWith(ack, { DB1_URL: pair.url, DB2_URL: ledger.db2.url }, logDir)]),
  ) as Record<Ack, Process>;
  const forget = cleanUpOnExit(() => {
    for (const server of Object.values(servers)) server.killNow();
  });
  try {
    const slots = 2 * (rounds + 1) * sizes.reduce((sum, { claims }) => sum + claims, 0);
    await pair.synchronous(true);
    const settings = await withClient(pair.first.url, async (client) => {
      await client.query('select public.pool_create($1, $2, $3, $4)', [POOL, slots, '{}', 'bench']);
      return readSettings(client);
    });
    await Promise.all(Object.values(servers).map((server) => server.start()));
    return await use(servers, settings);
  } finally {
    await Promise.all(Object.values(servers).map((server) => server.kill()));
    forget();
    await Promise.all([pair.stop(), ledger.stop()]);
    rmSync(logDir, { recursive: true });
  }
}

function serverWith(ack: Ack, places: Record<string, string>, logDir: string): Process {
  return new Process({
    name: `serve ${ack}`,
    args: ['serve'],
    env: {
      ...places,
      SLUICE_ACK: ack,
      SLUICE_PORT: '0',
      SLUICE_HOST: '127.0.0.1',
      SLUICE_ADMIN_KEY: KEYS.adminKey,
      SLUICE_JWT_SECRET: KEYS.jwtSecret,
    },
    ready: SERVER_READY,
    logDir,
    onFault: (what) => process.stderr.write(`${what}\n`),
  });
}
