// A list of the API in all its states: on its way, empty, or rows with a way to see more of them.

import type { ComponentChildren } from 'preact';
import type { Act } from '../lib/acts.ts';
import type { Pages } from '../lib/lists.ts';
import { usePlace } from '../lib/router.tsx';
import { Bench } from './bench.tsx';
import { useMay } from './may.tsx';
import { Await, Empty } from './states.tsx';
import { More, Table, type TableProps } from './table.tsx';

export interface ListOf<Row> extends Omit<TableProps<Row>, 'rows' | 'selection'> {
  /** What can be done with rows that are selected. */
  acts?: readonly Act[];
  /** Said where the address holds filters and nothing matches them. */
  noMatch?: string;
}

interface ListProps<Row> extends ListOf<Row> {
  pages: Pages<Row>;
  /** Shown where there are no rows. */
  children: ComponentChildren;
}

export function List<Row>({ pages, acts, noMatch, children, ...table }: ListProps<Row>) {
  const isSearch = usePlace().query.size > 0;
  const mayAct = useMay(acts?.[0]?.route ?? '');
  return (
    <Await loaded={pages}>
      {(rows) => {
        if (rows.length === 0)
          return isSearch && noMatch ? (
            <Empty title={noMatch}>Clear the search to see all of them.</Empty>
          ) : (
            children
          );
        if (acts && mayAct) return <Bench {...table} rows={rows} pages={pages} acts={acts} />;
        return (
          <>
            <Table {...table} rows={rows} />
            <More pages={pages} />
          </>
        );
      }}
    </Await>
  );
}
