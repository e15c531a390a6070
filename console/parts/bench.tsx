// A list to work on: select many, then act on them.

import { useState } from 'preact/hooks';
import type { Act } from '../lib/acts.ts';
import { count } from '../lib/format.ts';
import type { Pages } from '../lib/load.ts';
import { ActDialog } from './act_dialog.tsx';
import { type Column, More, Table } from './table.tsx';

/** What the server takes in one action. */
const MOST_AT_ONCE = 1_000;

interface BenchProps<Row> {
  caption: string;
  pages: Pages<Row>;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  keyOf(row: Row): string;
  nameOf(row: Row): string;
  acts: readonly Act[];
}

export function Bench<Row>({ caption, pages, rows, columns, keyOf, nameOf, acts }: BenchProps<Row>) {
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [act, setAct] = useState<Act>();
  // What is gone from the list is no longer selected either.
  const ids = rows
    .map(keyOf)
    .filter((key) => picked.has(key))
    .slice(0, MOST_AT_ONCE);
  const [acting, setActing] = useState<readonly string[]>([]);
  return (
    <>
      <div class={ids.length > 0 ? 'workbar workbar-active' : 'workbar'}>
        <span role="status">
          {ids.length > 0 ? `${count(ids.length)} selected` : 'Select some to act on them.'}
        </span>
        {ids.length > 0 && (
          <span class="workbar-acts">
            {acts.map((one) => (
              <button
                key={one.verb}
                type="button"
                class={`button ${one.isDanger ? 'button-danger' : 'button-main'}`}
                onClick={() => {
                  setActing(ids);
                  setAct(one);
                }}
              >
                {one.verb}…
              </button>
            ))}
          </span>
        )}
      </div>
      <Table
        caption={caption}
        rows={rows}
        columns={columns}
        keyOf={keyOf}
        nameOf={nameOf}
        selection={{ ids: picked, set: setPicked }}
      />
      <More pages={pages} />
      {act && <ActDialog act={act} ids={acting} onClose={() => setAct(undefined)} onDone={pages.reload} />}
    </>
  );
}

/** The same acts for one thing, on its own page. */
export function ActButtons({
  acts,
  id,
  onDone,
}: {
  acts: readonly Act[];
  id: string;
  onDone(isAll: boolean): void;
}) {
  const [act, setAct] = useState<Act>();
  return (
    <>
      {acts.map((one) => (
        <button
          key={one.verb}
          type="button"
          class={`button ${one.isDanger ? 'button-danger' : 'button-main'}`}
          onClick={() => setAct(one)}
        >
          {one.verb}…
        </button>
      ))}
      {act && <ActDialog act={act} ids={[id]} onClose={() => setAct(undefined)} onDone={onDone} />}
    </>
  );
}
