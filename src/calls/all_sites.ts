import type { CallSite } from '#core/calls/store.ts';
import type { Database } from '../db/database.ts';

const PAGE = 1_000;

/** Every site, in the order of their ids, page by page. */
export async function allSites(db2: Pick<Database, 'call'>): Promise<CallSite[]> {
  const found: CallSite[] = [];
  for (;;) {
    const after = found.at(-1)?.site_id ?? '';
    const page = await db2.call<CallSite>('calls.list_sites', { p_after: after, p_limit: PAGE });
    found.push(...page);
    if (page.length < PAGE) return found;
  }
}
