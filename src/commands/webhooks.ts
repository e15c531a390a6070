// `sluice webhooks`: endpoints, stored events, and help with signatures.

import { DB2_VARIABLES } from './db2.ts';
import type { Group } from './grammar.ts';
import { backfill } from './webhooks_backfill.ts';
import { endpoints } from './webhooks_endpoints.ts';
import { list, prune, show } from './webhooks_events.ts';
import { handlers } from './webhooks_handlers.ts';
import { inbox } from './webhooks_inbox.ts';
import { payments } from './webhooks_payments.ts';
import { replay, skip } from './webhooks_replay.ts';
import { secrets } from './webhooks_secrets.ts';
import { send } from './webhooks_send.ts';
import { verify } from './webhooks_verify.ts';

export const command: Group = {
  about: 'Webhook endpoints, stored events, and help with signatures',
  environment: {
    ...DB2_VARIABLES,
    DB1_URL: 'Postgres address of the intake, whose inbox `list` and `inbox` show',
  },
  exits: ['when all is done', 'when some event was not'],
  actions: {
    ...{ endpoints, secrets, handlers, payments, list, inbox, show, backfill },
    ...{ replay, skip, prune, send, verify },
  },
};
