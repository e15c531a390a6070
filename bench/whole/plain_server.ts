import { startPlainServer } from '../claims/plain_server.ts';
import { serve } from './served.ts';

/** Its statement has no order, and once the table is analysed the planner scans it from the start: the friendlier plan is forced. */
const INDEX_FORCED = 'options=-c%20enable_seqscan%3Doff';

serve(async ({ db1Url }: { db1Url: string }) => {
  const server = await startPlainServer(`${db1Url}${db1Url.includes('?') ? '&' : '?'}${INDEX_FORCED}`);
  return { answer: server.port, end: server.stop };
});
