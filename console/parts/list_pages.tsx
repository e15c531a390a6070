// Around a list: how many rows there are in all, all of them as a file, and the way to its other pages.

import { useEffect, useRef } from 'preact/hooks';
import { get, pathWith, type Query } from '../lib/api.ts';
import { every } from '../lib/format.ts';
import type { Pager, Pages } from '../lib/lists.ts';
import { useLoad } from '../lib/load.ts';
import { go, Link } from '../lib/router.tsx';
import type { Total } from '../lib/shapes.ts';
import { useMay } from './may.tsx';
import { Empty } from './states.tsx';

const NAMES: Readonly<Record<Total['how'], (total: string) => string>> = {
  exact: (total) => `${total} in all`,
  at_least: (total) => `${total} or more`,
  about: (total) => `about ${total}, an estimate`,
};

interface ListHeadProps<Row> {
  /** What its total and its export are called by; undefined where all of it is on one page, and it has no export. */
  list: string | undefined;
  filters: Query;
  pages: Pages<Row>;
}

/** The whole of a list that fits on its first page is counted already. */
function useTotal<Row>({ list, filters, pages }: ListHeadProps<Row>): Total | undefined {
  const rows = pages.value?.length ?? 0;
  const isWhole = (pages.pager?.number ?? 1) === 1 && !pages.hasMore;
  const isAsked = list !== undefined && !isWhole;
  const asked = useLoad(`total ${list} ${isAsked ? JSON.stringify(filters) : ''}`, async () =>
    isAsked ? await get<Total>(`/admin/totals/${list}`, filters) : undefined,
  );
  // An act on the list loads it again: then there may be fewer.
  const counted = useRef(pages.value);
  useEffect(() => {
    if (!isAsked || pages.pager === undefined || counted.current === pages.value) return;
    counted.current = pages.value;
    asked.reload();
  }, [pages.value]);
  return isWhole ? { total: rows, how: 'exact' } : asked.value;
}

export function ListHead<Row>(props: ListHeadProps<Row>) {
  const { list, filters } = props;
  const total = useTotal(props);
  const mayExport = useMay('GET /admin/export/:list');
  return (
    <div class="list-head">
      <span role="status" class="list-total">
        {total ? NAMES[total.how](every(total.total)) : '\u00a0'}
      </span>
      {list !== undefined && mayExport && (
        <span class="list-export">
          Export{' '}
          {(['csv', 'json'] as const).map((format) => (
            // A download, not a page of the console.
            <a key={format} href={pathWith(`/admin/export/${list}`, { ...filters, format })} download>
              {format.toUpperCase()}
            </a>
          ))}
        </span>
      )}
    </div>
  );
}

export function PagerLinks({ pager: { number, next, to } }: { pager: Pager }) {
  if (number === 1 && next === undefined) return null;
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    const wanted = Number(new FormData(event.currentTarget as HTMLFormElement).get('page'));
    if (wanted >= 1) go(to(wanted));
  };
  const near = [number - 2, number - 1].filter((one) => one > 1);
  return (
    <nav class="pager" aria-label="Pages">
      {number > 1 && <Link to={to(number - 1)}>Previous</Link>}
      {number > 1 && <Link to={to(1)}>1</Link>}
      {number > 4 && <span class="muted">…</span>}
      {near.map((one) => (
        <Link key={one} to={to(one)}>
          {one}
        </Link>
      ))}
      <span class="pager-here" aria-current="page">
        {number}
      </span>
      {next !== undefined && <Link to={next}>{number + 1}</Link>}
      {next !== undefined && <Link to={next}>Next</Link>}
      <form class="pager-go" key={number} onSubmit={onSubmit}>
        <label>
          Page <input name="page" type="number" min={1} max={10_000} defaultValue={String(number)} required />
        </label>
        <button type="submit" class="button button-small">
          Go
        </button>
      </form>
    </nav>
  );
}

/** Behind the last row. */
export function PastTheEnd<Row>({ pages: { pager } }: { pages: Pages<Row> }) {
  return (
    <Empty title="The list ends before this page">
      {pager && <Link to={pager.to(1)}>Go to page 1</Link>}
    </Empty>
  );
}
