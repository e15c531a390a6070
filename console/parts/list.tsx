// A list of the API in all its states: on its way, empty, or rows with a way to see more of them.

import type { ComponentChildren } from 'preact';
import type { Act } from '../lib/acts.ts';
import type { Query } from '../lib/api.ts';
import { type Pages, useFilters } from '../lib/lists.ts';
import { Bench } from './bench.tsx';
import { ListHead, PagerLinks, PastTheEnd } from './list_pages.tsx';
import { useMay } from './may.tsx';
import { Await, Empty } from './states.tsx';
import { More, Table, type TableProps } from './table.tsx';

export interface ListOf<Row> extends Omit<TableProps<Row>, 'rows' | 'selection'> {
  /** What can be done with rows that are selected. */
  acts?: readonly Act[];
  /** Of a list that can be told whole: what its export is called by, if it has one, with filters as that takes them; the address's where left out. */
  whole?: { readonly list?: string; readonly filters?: Query };
  /** Said where the address holds filters and nothing matches them. */
  noMatch?: string;
}

interface ListProps<Row> extends ListOf<Row> {
  pages: Pages<Row>;
  /** Shown where there are no rows. */
  children: ComponentChildren;
}

export function List<Row>({ pages, acts, noMatch, whole, children, ...table }: ListProps<Row>) {
  const filters = useFilters();
  const isSearch = Object.keys(filters).length > 0;
  const mayAct = useMay(acts?.[0]?.route ?? '');
  return (
    <Await loaded={pages}>
      {(rows) => {
        if (rows.length === 0 && (pages.pager?.number ?? 1) > 1) return <PastTheEnd pages={pages} />;
        if (rows.length === 0)
          return isSearch && noMatch ? (
            <Empty title={noMatch}>Clear the search to see all of them.</Empty>
          ) : (
            children
          );
        return (
          <>
            {whole && <ListHead list={whole.list} filters={whole.filters ?? filters} pages={pages} />}
            {acts && mayAct ? (
              <Bench {...table} rows={rows} pages={pages} acts={acts} />
            ) : (
              <Table {...table} rows={rows} />
            )}
            {pages.pager ? <PagerLinks pager={pages.pager} /> : <More pages={pages} />}
          </>
        );
      }}
    </Await>
  );
}
