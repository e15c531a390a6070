// Bugs that were fixed here, as they would come back: one place of the product, and the test that has to notice. Those that the
// controls of test/model and chaos plant are not repeated here; docs/bugs.md lists all.

import { CORE } from './parts.ts';

export interface Bug {
  readonly name: string;
  /** What the product did, for people. */
  readonly was: string;
  readonly file: string;
  /** Stands in the file once. */
  readonly from: string;
  readonly to: string;
  /** Passes without the bug. */
  readonly test: string;
  /** A part of the name of the test in it that fails with the bug. */
  readonly finds: string;
}

export const BUGS: readonly Bug[] = [
  {
    name: 'spoiled-batch',
    was: 'one bad request spoiled the batch of all who asked with it',
    file: `${CORE}/coalescer.ts`,
    from: '(batch.length > 1 && this.#options.mayBeOneMembers(error))',
    to: 'false',
    test: 'test/core/coalescer.test.ts',
    finds: 'halves a spoiled batch until the request that spoils it stands alone',
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
  {
    name: 'any-refusal',
    was: 'a mistyped validation address refused claims silently',
    file: `${CORE}/bridge/hooks.ts`,
    from: 'new Set([402, 409, 410, 422])',
    to: 'new Set([402, 404, 409, 410, 422])',
    test: 'test/bridge/validation.test.ts',
    finds: 'a mistyped address of the validation makes dead letters, and refuses no claim',
  },
  {
    name: 'connection-of-another',
    was: 'a commit function that raised 08001 stopped healthy pools, and never counted',
    file: `${CORE}/failure.ts`,
    from: "return blame === 'database' && (error as { severity?: unknown }).severity !== 'ERROR';",
    to: "return blame === 'database';",
    test: 'test/bridge/outage.test.ts',
    finds: 'that a pool’s own function raises itself is about the message, which does not stay for ever',
  },
  {
    name: 'lock-in-a-finish',
    was: 'a lock in a finish failed the finish of the whole batch',
    file: `${CORE}/bridge/bridge.ts`,
    from: 'const isObstacle = OBSTACLES.has(blameOf(error));',
    to: 'const isObstacle = false;',
    test: 'test/bridge/reasons.test.ts',
    finds: 'is halved, and tried again under its lease',
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
    name: 'set-size',
    was: 'sets of events shrank to one event where commits were slow, and stayed there',
    file: `${CORE}/webhook/set_size.ts`,
    from: '  return Math.max(whole, Math.floor(work / Math.max(msPerEvent, SET_MS / Number.MAX_SAFE_INTEGER)));',
    to: '  return work < 0 ? 1 : whole;',
    test: 'test/webhook/set_size.test.ts',
    finds: 'grow although the commit of each takes long: it takes no longer for more events',
  },
  {
    name: 'asked-for-nothing',
    was: 'made-up pools, endpoints and sites each cost the database a question',
    file: `${CORE}/answer_cache.ts`,
    from: '      this.#missing.add(key);\n',
    to: '',
    test: 'test/core/answer_cache.test.ts',
    finds: 'that there is none is believed for a second, for ten thousand keys',
  },
  {
    name: 'known-by-its-id',
    was: 'the id of an unverified claim was enough to release it',
    file: `${CORE}/claim_owner.ts`,
    from: ': secret_matches === true;',
    to: ': true;',
    test: 'test/core/claim.test.ts',
    finds: 'shows the status alone of a claim without a secret, and releases it for no stranger',
  },
  {
    name: 'paid-between-two-looks',
    was: 'a payment between two looks of the closer was closed as expired',
    file: `${CORE}/orders/closer.ts`,
    from: "standing === 'paid' ? 'complete' : standing",
    to: "standing === 'paid' ? 'expired' : standing",
    test: 'test/orders/closer.test.ts',
    finds: 'is complete where its payment was made between the two answers',
  },
  {
    name: 'empty-code',
    was: 'PostgREST answered a claim 400 with an empty code in a crash, which a client takes for a no',
    file: 'src/stack/gateway.ts',
    from: "JSON.parse(body.toString())?.code === '';",
    to: "JSON.parse(body.toString())?.code === 'never';",
    test: 'test/stack/gateway.test.ts',
    finds: 'an error with an empty code, or one that is cut off, is answered 503 with Retry-After; others pass',
  },
  {
    name: 'stacked-domain',
    was: 'generated types had pool_id: unknown',
    file: 'db1/supabase/migrations/20260224100000_intake_engine_setup.sql',
    from: 'create domain public.given_pool_id as text\n',
    to: 'create domain public.given_pool_id as public.given_id\n',
    test: 'test/house/domains.test.ts',
    finds: 'every domain stands on a type of Postgres, so that generated types know it',
  },
  {
    name: 'any-isolation',
    was: 'in a transaction of repeatable read a pool stayed sold out, and limits did not hold',
    file: 'db1/supabase/migrations/20260224100001_intake_engine_functions.sql',
    from: "if current_setting('transaction_isolation') <> 'read committed' then",
    to: 'if false then',
    test: 'test/claim/isolation.test.ts',
    finds: 'is refused by name, and changes nothing',
  },
  {
    name: 'checkout-twice',
    was: 'a checkout counted twice against the limit of its address',
    file: `${CORE}/claim_owner.ts`,
    from: 'if (isBuyer) ports.admit?.(request, 1);',
    to: 'if (isBuyer) ports.admit?.(request, 2);',
    test: 'test/orders/checkout.test.ts',
    finds: 'counts once against the limit of its address',
  },
  {
    name: 'short-jwt-secret',
    was: 'a server started with the JWT secret "secret"',
    file: 'src/commands/serve.ts',
    from: ".length < MIN_JWT_SECRET_CHARS)\n",
    to: '.length < 1)\n',
    test: 'test/server/serve.test.ts',
    finds: 'refuses a JWT secret that is shorter than HS256 needs, on loopback too',
  },
];
