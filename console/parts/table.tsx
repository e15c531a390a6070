// A table whose rows turn into cards where it is narrow. A row is reached by the link in its first column.

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Pages } from '../lib/lists.ts';
import { Link } from '../lib/router.tsx';
import { Trouble } from './states.tsx';

export interface Column<Row> {
  head: string;
  cell(row: Row): ComponentChildren;
  isNumber?: boolean;
  /** Where it stands on the card of a narrow screen; else it takes half a line, with its name above. */
  place?: 'title' | 'corner' | 'wide';
}

/** The first column: what stands in it leads to the row's own page. */
export function linkColumn<Row>(
  head: string,
  to: (row: Row) => string,
  cell: (row: Row) => ComponentChildren,
): Column<Row> {
  return {
    head,
    place: 'title',
    cell: (row) => (
      <Link class="row-link" to={to(row)}>
        {cell(row)}
      </Link>
    ),
  };
}

export interface Selection {
  readonly ids: ReadonlySet<string>;
  set(ids: ReadonlySet<string>): void;
}

export interface TableProps<Row> {
  caption: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  keyOf(row: Row): string;
  /** How a row is called where it is selected. */
  nameOf?(row: Row): string;
  selection?: Selection | undefined;
}

export function Table<Row>({ caption, rows, columns, keyOf, nameOf = keyOf, selection }: TableProps<Row>) {
  const isAll =
    selection !== undefined && rows.length > 0 && rows.every((row) => selection.ids.has(keyOf(row)));
  const toggle = (key: string): void => {
    const ids = new Set(selection?.ids);
    if (!ids.delete(key)) ids.add(key);
    selection?.set(ids);
  };
  return (
    <table class={selection ? 'table table-selectable' : 'table'}>
      <caption class="sr-only">{caption}</caption>
      <thead>
        <tr>
          {selection && (
            <th scope="col" class="pick">
              <label>
                <input
                  type="checkbox"
                  checked={isAll}
                  onChange={() => selection.set(new Set(isAll ? [] : rows.map(keyOf)))}
                />
                <span class="pick-all">Select all</span>
              </label>
            </th>
          )}
          {columns.map(({ head, isNumber }) => (
            <th key={head} scope="col" class={isNumber ? 'number' : undefined}>
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => {
          const key = keyOf(row);
          const isPicked = selection?.ids.has(key) ?? false;
          return (
            <tr key={key} class={isPicked ? 'is-picked' : undefined}>
              {selection && (
                <td class="pick">
                  <input
                    type="checkbox"
                    aria-label={`Select ${nameOf(row)}`}
                    checked={isPicked}
                    onChange={() => toggle(key)}
                  />
                </td>
              )}
              {columns.map(({ head, cell, isNumber, place }) => (
                <td key={head} data-label={head} class={isNumber ? 'number' : place}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

export function More<Item>({ pages }: { pages: Pages<Item> }) {
  const [isBusy, setBusy] = useState(false);
  if (!pages.hasMore) return null;
  const load = async (): Promise<void> => {
    setBusy(true);
    await pages.more();
    setBusy(false);
  };
  return (
    <>
      {pages.moreError && <Trouble error={pages.moreError} />}
      <p class="more">
        <button type="button" class="button" disabled={isBusy} onClick={load}>
          {isBusy ? 'Loading…' : 'Show more'}
        </button>
      </p>
    </>
  );
}
