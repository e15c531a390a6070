import { createDatabase } from '../db/database.ts';
import { createLog } from '../log.ts';

/** The site of `npm start`; a site that exists stays as it is. Its secret is named here, the value is in `.sluice/env`. */
export async function addDemoSite(db2Url: string, siteId: string): Promise<void> {
  const database = createDatabase({ url: db2Url, max: 1, applicationName: 'sluice-setup', log: createLog() });
  try {
    await database.call('calls.add_site', {
      p_site_id: siteId,
      p_secret_names: ['OPS_SITE_SECRET'],
      p_require_signature: true,
      p_kinds: null,
      p_actor: 'npm start',
      p_reason: 'demo site',
    });
  } finally {
    await database.end();
  }
}
