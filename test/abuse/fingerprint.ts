// Both databases as one value to compare: for each table the number of its rows and the sum of their hashes, whatever
// their order.

import pg from 'pg';

export type Fingerprint = ReadonlyMap<string, string>;

/** The copy of endpoints and sites, and the console's memory: a running server writes them every few seconds, whatever is asked of it. */
export const WRITTEN_MEANWHILE = `'copied_doors', 'doors_copied', 'samples', 'minute_samples', 'marks', 'sampler', 'issues', 'alerts'`;

const TABLES = `select format('%I.%I', n.nspname, c.relname) as name
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema')
    and c.relname not in (${WRITTEN_MEANWHILE})
  order by 1`;

export interface Watch {
  take(): Promise<Fingerprint>;
  /** The tables that have changed since the last call. */
  changes(): Promise<string[]>;
  stop(): Promise<void>;
}

export async function watchDatabases(urls: readonly string[]): Promise<Watch> {
  const sides = await Promise.all(
    urls.map(async (url, index) => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      const { rows } = await client.query<{ name: string }>(TABLES);
      const hashes = rows.map(
        ({ name }) =>
          `select '${name}' as name, count(*) || ' ' || coalesce(sum(hashtextextended(t::text, 0)), 0) as hash from ${name} t`,
      );
      return { client, side: `db${index + 1}`, sql: hashes.join(' union all ') };
    }),
  );
  const take = async (): Promise<Fingerprint> => {
    const taken = await Promise.all(
      sides.map(async ({ client, side, sql }) => {
        const { rows } = await client.query<{ name: string; hash: string }>(sql);
        return rows.map(({ name, hash }): [string, string] => [`${side} ${name}`, hash]);
      }),
    );
    last = new Map(taken.flat());
    return last;
  };
  let last: Fingerprint = new Map();
  await take();
  return {
    take,
    async changes() {
      const before = last;
      return changed(before, await take());
    },
    async stop() {
      await Promise.all(sides.map(({ client }) => client.end()));
    },
  };
}

/** The tables that differ, in their order. */
export function changed(before: Fingerprint, after: Fingerprint): string[] {
  return [...new Set([...before.keys(), ...after.keys()])].filter(
    (name) => before.get(name) !== after.get(name),
  );
}
