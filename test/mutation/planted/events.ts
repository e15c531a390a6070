// Bugs of webhooks, payments and calls, as they would come back.

import type { Bug } from '../bugs.ts';
import { CORE } from '../parts.ts';

export const EVENTS: readonly Bug[] = [
  {
    name: 'slow-answer',
    was: 'providers waited for a silent database longer than they wait',
    file: `${CORE}/router.ts`,
    from: 'export const DELIVERY_MS = 10_000;',
    to: 'export const DELIVERY_MS = 60_000;',
    test: 'test/webhook/answers.test.ts',
    finds: 'is told to come again after ten seconds of a silent database',
  },
  {
    name: 'rounded-numbers',
    was: 'numbers above 2^53 lost their digits, and their events were dead letters',
    file: `${CORE}/webhook/read.ts`,
    from: 'const marked = MAY_ROUND.test(text) ? markNumbers(text) : text;',
    to: 'const marked = text;',
    test: 'test/webhook/verify/read.test.ts',
    finds: 'numbers above 2^53 keep their digits, in the payload and in what names the event',
  },
  {
    name: 'dead-letter-200',
    was: 'an inline event that had just become a dead letter was answered 200',
    file: `${CORE}/webhook/routes.ts`,
    from: "if (isAny('dead_letter')) throw new HttpError('processing_failed', DEAD_LETTER_HINT);",
    to: '',
    test: 'test/webhook/answers.test.ts',
    finds: 'and is a dead letter now is never answered 2xx',
  },
  {
    name: 'set-size',
    was: 'sets of events shrank to one event where commits were slow, and stayed there',
    file: `${CORE}/webhook/set_size.ts`,
    from: '  return Math.max(whole, Math.floor(work / Math.max(msPerEvent, SET_MS / Number.MAX_SAFE_INTEGER)));',
    to: '  return work < 0 ? 1 : whole;',
    test: 'test/webhook/set_size.test.ts',
    finds: 'grow although the commit of each takes long: it takes no longer for more events',
  },
  {
    name: 'unpaid-invoice',
    was: 'a payment of an invoice that is not paid was credited',
    file: 'db2/supabase/migrations/20260224100006_payments.sql',
    from: "\n      and p_object #> '{payments,data,0,amount_paid}' is distinct from 'null' then",
    to: ' then',
    test: 'db2/supabase/tests/effects/unnamed.test.sql',
    finds: 'so is an invoice whose one payment is not paid: its money came another way',
  },
  {
    name: 'spoiled-inbox',
    was: 'one message that a cell could not store kept its neighbours out of the inbox',
    file: `${CORE}/inbox/inbox.ts`,
    from: '      mayBeOneMembers,\n    });',
    to: '      mayBeOneMembers: () => false,\n    });',
    test: 'test/core/inbox.test.ts',
    finds: 'refuses the one message that a cell cannot store, and takes its neighbours',
  },
];
