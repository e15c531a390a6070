// `sluice pools describe`: what buyers read about a pool.

import type { PoolDetails } from '#core/pool.ts';
import { AdminClient } from '../admin/client.ts';
import { action } from './grammar.ts';
import { OPTION, readConnection } from './operator.ts';
import { DETAIL_OPTIONS, readDetails } from './pool_rules.ts';
import { formatTable } from './table.ts';

export const describe = action({
  about: `Show or change what buyers read: on the drop page and on tickets

Without options it shows what is set. The value "none" removes a detail.`,
  args: '<pool>',
  options: { ...DETAIL_OPTIONS, reason: OPTION.reason, json: OPTION.json },
  examples: [
    "sluice pools describe opening_night --title 'Opening night' --place 'Main hall'",
    'sluice pools describe opening_night --starts-at 2026-03-01T18:00:00Z --time-zone Europe/Berlin',
  ],
  async run(values, [pool]) {
    const api = new AdminClient(readConnection(process.env));
    const path = `/admin/pools/${encodeURIComponent(pool)}/details`;
    const changes = readDetails(values);
    const details =
      Object.keys(changes).length === 0
        ? await api.get<PoolDetails>(path)
        : await api.post<PoolDetails>(path, { ...changes, ...(values.reason && { reason: values.reason }) });
    if (values.json) console.log(JSON.stringify(details));
    else {
      const rows = Object.entries(details).map(([name, value]) => [name, value ?? '-']);
      console.log(formatTable(['DETAIL', 'VALUE'], rows));
    }
    return 0;
  },
});
