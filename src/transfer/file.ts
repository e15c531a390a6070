// The file of an export, as JSON lines: a header; for each table a line with its columns and then a line per row, every
// value as the text that Postgres reads back; the sequences of each database; and at the end the counts with a checksum over
// everything before, so that a cut or changed file is noticed before any database is changed.

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { StackError } from '../failure.ts';
import type { SideName } from '../migrate/sides.ts';

export type Row = readonly (string | null)[];
export type Counts = Record<string, number>;

export type TableLine = { database: SideName; table: string; columns: string[] };
export type SequencesLine = { database: SideName; sequences: Record<string, string> };
export type EndLine = { rows: Counts; sha256: string };

const FORMAT = 'sluice-export';
export const FORMAT_VERSION = 1;
const OWNER_ONLY = 0o600;
const BUFFER_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

export interface ExportWriter {
  table(line: TableLine): Promise<void>;
  row(row: Row): Promise<void>;
  sequences(line: SequencesLine): Promise<void>;
  /** Writes the end and waits until the file is on disk: what it was made from may be removed after this. */
  finish(): Promise<EndLine>;
  /** Removes the file. */
  abandon(): Promise<void>;
}

export async function createExport(file: string, at: Date): Promise<ExportWriter> {
  const handle = await open(file, 'wx', OWNER_ONLY).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST')
      throw new StackError(`${file} is already there`, 'name another file, or remove that one');
    throw new StackError(
      `${file} cannot be written: ${error.message}`,
      'name a file in a folder that is there',
      error,
    );
  });
  const hash = createHash('sha256');
  const rows: Counts = {};
  let current = '';
  let buffered = '';
  const flush = async () => {
    const text = buffered;
    buffered = '';
    await handle.write(text);
  };
  const write = async (value: unknown) => {
    const line = `${JSON.stringify(value)}\n`;
    hash.update(line);
    buffered += line;
    if (buffered.length >= BUFFER_BYTES) await flush();
  };
  await write({ format: FORMAT, version: FORMAT_VERSION, at: at.toISOString() });
  return {
    async table(line) {
      current = `${line.database}.${line.table}`;
      rows[current] = 0;
      await write(line);
    },
    async row(row) {
      rows[current] = (rows[current] ?? 0) + 1;
      await write(row);
    },
    sequences: write,
    async finish() {
      const end = { rows, sha256: hash.digest('hex') };
      buffered += `${JSON.stringify({ end })}\n`;
      await flush();
      await handle.sync();
      await handle.close();
      return end;
    },
    async abandon() {
      await handle.close();
      await rm(file);
    },
  };
}

export interface ExportVisitor {
  table(line: TableLine): Promise<void> | void;
  row(row: Row): Promise<void> | void;
  sequences(line: SequencesLine): Promise<void> | void;
}

/** Walks through the file once. Throws when the version is not ours, the end is missing, or the checksum differs. */
export async function readExport(file: string, visitor: Partial<ExportVisitor> = {}): Promise<EndLine> {
  const hash = createHash('sha256');
  const rows: Counts = {};
  let current = '';
  let number = 0;
  let end: EndLine | undefined;
  for await (const line of linesOf(file)) {
    number++;
    const value = parse(file, line, number);
    if (end !== undefined) throw damaged(file, `line ${number} follows the end`);
    if (number === 1) checkHeader(file, value);
    if ('end' in value) {
      end = endFrom(file, value.end);
      continue;
    }
    hash.update(line).update('\n');
    if (Array.isArray(value)) {
      rows[current] = (rows[current] ?? 0) + 1;
      await visitor.row?.(value);
    } else if ('table' in value) {
      current = `${value.database}.${value.table}`;
      rows[current] ??= 0;
      await visitor.table?.(value as unknown as TableLine);
    } else if ('sequences' in value) await visitor.sequences?.(value as unknown as SequencesLine);
  }
  if (end === undefined) throw damaged(file, 'its end is missing, so it was cut short');
  if (end.sha256 !== hash.digest('hex')) throw damaged(file, 'its checksum differs, so it was changed');
  // The checksum does not cover the last line itself.
  const differs = Object.keys({ ...rows, ...end.rows }).find((name) => rows[name] !== end?.rows[name]);
  if (differs !== undefined)
    throw damaged(
      file,
      `it holds ${rows[differs] ?? 0} rows of ${differs}, and its end says ${end.rows[differs] ?? 0}`,
    );
  return end;
}

function endFrom(file: string, value: unknown): EndLine {
  const { rows, sha256 } = (value ?? {}) as Partial<EndLine>;
  if (typeof rows !== 'object' || rows === null || typeof sha256 !== 'string')
    throw damaged(file, 'its last line is not what the end of an export is');
  return { rows, sha256 };
}

function checkHeader(file: string, value: Record<string, unknown>): void {
  if (value.format !== FORMAT)
    throw new StackError(`${file} is not an export of Sluice`, 'make one with `npx sluice export <file>`');
  if (value.version !== FORMAT_VERSION)
    throw new StackError(
      `${file} has version ${String(value.version)} of the format; this Sluice reads version ${FORMAT_VERSION}`,
      'import it with the Sluice that made it, or export again with this one',
    );
}

/** Not with node:readline, which also cuts at U+2028, and JSON leaves that as it is. */
async function* linesOf(file: string): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  for await (const chunk of chunksOf(file)) {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      yield Buffer.concat([...parts, chunk.subarray(from, at)]);
      parts = [];
      from = at + 1;
    }
    if (from < chunk.length) parts.push(chunk.subarray(from));
  }
  // A line without its end is a file without its end.
  if (parts.length > 0) throw damaged(file, 'its last line is not whole, so it was cut short');
}

async function* chunksOf(file: string): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(file) as AsyncIterable<Buffer>;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StackError(
      `${file} cannot be read: ${reason}`,
      'name a file that `npx sluice export` made',
      error,
    );
  }
}

function parse(file: string, line: Buffer, number: number): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(line.toString('utf8'));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  throw damaged(file, `line ${number} is not what a line of an export is`);
}

function damaged(file: string, what: string): StackError {
  return new StackError(
    `${file} is damaged: ${what}`,
    'nothing was imported; copy the file again, or export again',
  );
}
