// Both databases into one file: DB1 first, then DB2, so that a claim that a worker carried in between is found as a ticket.

import type pg from 'pg';
import type { SideName } from '../migrate/sides.ts';
import { withClient } from '../migrate/sql.ts';
import { createExport, type EndLine, type ExportWriter, type Row } from './file.ts';
import {
  beginSnapshot,
  CHAIN_START,
  countRows,
  findHomes,
  type Home,
  otherSessions,
  readChainStart,
  readRows,
  readSequences,
  readSlotCache,
  SLOT_CACHE,
} from './store.ts';
import { SEQUENCES, TABLES } from './tables.ts';

export type Urls = Readonly<Record<SideName, string>>;

export async function exportDatabases(
  urls: Urls,
  file: string,
  onRows: (count: number) => void,
): Promise<EndLine> {
  const writer = await createExport(file, new Date());
  try {
    for (const side of ['db1', 'db2'] as const)
      await withClient(urls[side], (client) => exportSide(client, side, writer, onRows));
    return await writer.finish();
  } catch (error) {
    await writer.abandon();
    throw error;
  }
}

async function exportSide(
  client: pg.Client,
  side: SideName,
  writer: ExportWriter,
  onRows: (count: number) => void,
): Promise<void> {
  const writePages = async (pages: AsyncGenerator<Row[]>) => {
    for await (const page of pages) {
      for (const row of page) await writer.row(row);
      onRows(page.length);
    }
  };
  await beginSnapshot(client);
  for (const home of await findHomes(client, TABLES[side])) {
    const columns = home.columns.filter(({ isGenerated }) => !isGenerated).map(({ name }) => name);
    await writer.table({ database: side, table: home.table.name, columns });
    await writePages(readRows(client, home));
  }
  const writeOther = async ({ table, columns }: Home, pages: AsyncGenerator<Row[]>) => {
    await writer.table({ database: side, table: table.name, columns: columns.map(({ name }) => name) });
    await writePages(pages);
  };
  await writeOther(CHAIN_START, readChainStart(client));
  if (side === 'db1') await writeOther(SLOT_CACHE, readSlotCache(client));
  // After the rows: a sequence has no snapshot, and read last it is at least as far as every row.
  await writer.sequences({ database: side, sequences: await readSequences(client, SEQUENCES[side]) });
}

/** How many rows an export will write, for a progress bar. */
export async function countAll(urls: Urls): Promise<number> {
  let total = 0;
  for (const side of ['db1', 'db2'] as const) {
    await withClient(urls[side], async (client) => {
      for (const home of await findHomes(client, TABLES[side])) total += await countRows(client, home);
    });
  }
  return total;
}

/** The programs of Sluice that are connected to one of the databases, such as workers. */
export async function connectedPrograms(urls: Urls): Promise<string[]> {
  const names = await Promise.all([urls.db1, urls.db2].map((url) => withClient(url, otherSessions)));
  return [...new Set(names.flat())].sort();
}
