// What is filtered in a list, whole: how many rows there are, and all of them as a file. A file is written page by page, at the pace of
// its reader: neither the server nor a database holds more than a page of it.

import type { CallFunction } from '../call_function.ts';
import { HttpError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import { readQuery } from '../query.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, type Route } from '../router.ts';
import type { ObjectSchema, Schema } from '../schema.ts';
import { csvLine } from './csv.ts';
import { filtersOf, type ListPorts, type ListSource, listSources, type Row } from './lists.ts';

export interface ExportPorts extends ListPorts {
  /** As db1, and throws where the answer lacks a cell: a file that ends says that it is whole. */
  readonly wholeDb1: CallFunction;
  readonly now: Clock;
  /** Files that are written at once; MAX_EXPORTS where left out. */
  readonly maxExports?: number;
}

/** A page is a statement: short enough that the doors do not wait for it. */
const ROWS_AT_ONCE = 1_000;
/** Each has a statement under way at a time, on connections that the console's other pages need too. */
export const MAX_EXPORTS = 4;
const FORMAT = {
  type: 'string',
  pattern: '^(csv|json)$',
  description: 'csv where left out.',
} as const satisfies Schema;

const TYPES: Readonly<Record<string, string>> = {
  csv: 'text/csv; charset=utf-8',
  json: 'application/json; charset=utf-8',
};

export const EXPORT_LISTS =
  'pools, claims, orders, tickets, payments, credits, refunds, events, calls, audit or dead-letters.';

/** What all lists take beside their own filters; for the description. */
export const EXPORT_QUERY = {
  type: 'object',
  properties: { format: FORMAT },
  additionalProperties: false,
} as const satisfies ObjectSchema;

export function exportRoutes(ports: ExportPorts): Route[] {
  const [counts, files] = [listSources(ports), listSources({ ...ports, db1: ports.wholeDb1 })];
  const exports = { open: 0 };
  const source = (sources: ReturnType<typeof listSources>, name: string): ListSource => {
    const found = Object.hasOwn(sources, name) ? sources[name] : undefined;
    if (found === undefined)
      throw new HttpError('not_found', `No list has this name. Ask for ${EXPORT_LISTS}`);
    return found;
  };
  const total = async (request: HttpRequest, name: string): Promise<HttpResponse> => {
    const list = source(counts, name);
    return jsonResponse(200, await list.total(readQuery(request.query, filtersOf(list.query, {}))));
  };
  const file = async (request: HttpRequest, name: string): Promise<HttpResponse> => {
    const list = source(files, name);
    const { format = 'csv', ...filters }: Readonly<Record<string, unknown>> = readQuery(
      request.query,
      filtersOf(list.query, { format: FORMAT }),
    );
    if (exports.open >= (ports.maxExports ?? MAX_EXPORTS)) throw new HttpError('overloaded');
    // Before the head of the answer: what the database refuses is a refusal, not a file that breaks off.
    const first = await list.page(filters, null, ROWS_AT_ONCE);
    const pages = allPages(list, filters, first);
    const day = new Date(ports.now()).toISOString().slice(0, 10);
    return {
      status: 200,
      headers: {
        'content-type': TYPES[String(format)] ?? '',
        'content-disposition': `attachment; filename="sluice-${name}-${day}.${format}"`,
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
      },
      body: '',
      parts: counted(exports, (format === 'json' ? jsonOf : csvOf)(pages, list.columns)),
    };
  };
  return [
    { method: 'GET', path: '/admin/totals/:list', handle: total },
    { method: 'GET', path: '/admin/export/:list', handle: file },
  ];
}

async function* allPages(
  list: ListSource,
  filters: Readonly<Record<string, unknown>>,
  first: readonly Row[],
): AsyncGenerator<readonly Row[]> {
  for (let rows = first; ; ) {
    yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < ROWS_AT_ONCE) return;
    rows = await list.page(filters, list.keyOf(last), ROWS_AT_ONCE);
  }
}

async function* csvOf(
  pages: AsyncIterable<readonly Row[]>,
  columns: readonly string[],
): AsyncGenerator<string> {
  yield csvLine(columns);
  for await (const rows of pages)
    if (rows.length > 0) yield rows.map((row) => csvLine(columns.map((name) => row[name]))).join('');
}

async function* jsonOf(
  pages: AsyncIterable<readonly Row[]>,
  columns: readonly string[],
): AsyncGenerator<string> {
  // The columns and nothing else: a row may hold what is for a worker alone.
  const textOf = (row: Row) => JSON.stringify(Object.fromEntries(columns.map((name) => [name, row[name]])));
  let before = '[\n';
  for await (const rows of pages) {
    if (rows.length === 0) continue;
    yield before + rows.map(textOf).join(',\n');
    before = ',\n';
  }
  yield before === '[\n' ? '[]\n' : '\n]\n';
}

/** Counts those that are being read: an answer that a client does not begin to read takes no place. */
async function* counted(exports: { open: number }, parts: AsyncIterable<string>): AsyncGenerator<string> {
  exports.open += 1;
  try {
    yield* parts;
  } finally {
    exports.open -= 1;
  }
}
