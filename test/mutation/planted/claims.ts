// Bugs of claims, slots, the queue, the bridge and the ledger, as they would come back.

import type { Bug } from '../bugs.ts';
import { CORE } from '../parts.ts';

export const CLAIMS: readonly Bug[] = [
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
    name: 'stuck-pool',
    was: 'a request id in an open transaction failed buyers of other pools',
    file: `${CORE}/coalescer.ts`,
    from: 'if (mayPass(error) || (',
    to: 'if ((',
    test: 'test/claim/neighbours.test.ts',
    finds:
      'whose request id is in an open transaction, no buyer fails or waits, and of its own buyers only that one does',
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
    name: 'one-line-for-all',
    was: 'a crowd for locked slots made buyers of other pools wait',
    file: `${CORE}/claim_lanes.ts`,
    from: 'keyOf: ({ poolId }) => poolId,',
    to: "keyOf: () => '',",
    test: 'test/claim/neighbours.test.ts',
    finds:
      'whose last slots are in an open transaction and which 1,500 ask for, a claim does not wait for them',
  },
  {
    name: 'withdrawn-comes-back',
    was: 'a slot that was withdrawn while a claim held it came back on sale',
    file: 'db1/supabase/migrations/20260224100003_inventory.sql',
    from: '  set withdrawn_at = now()',
    to: '  set withdrawn_at = null',
    test: 'test/claim/odd_slots.test.ts',
    finds: 'that was withdrawn while a claim held it stays withdrawn',
  },
  {
    name: 'ledger-not-asked',
    was: 'a message died although the ledger had its ticket',
    file: `${CORE}/bridge/tickets.ts`,
    from: "if (ticket === 'already') delivery.end('committed');",
    to: "if (ticket === 'already') endWithout(delivery);",
    test: 'test/bridge/spent.test.ts',
    finds: 'what the ledger has is committed, what another has is a conflict, the rest are dead letters',
  },
  {
    name: 'validated-again',
    was: 'a claim that had been validated was validated again',
    file: `${CORE}/bridge/delivery.ts`,
    from: "if (this.#payload !== undefined && taken.claim_state === 'validated') this.validated();",
    to: '',
    test: 'test/bridge/validation.test.ts',
    finds: 'a validated claim is not validated again, whether its row or its message says so',
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
    name: 'any-refusal',
    was: 'a mistyped validation address refused claims silently',
    file: `${CORE}/bridge/hooks.ts`,
    from: 'new Set([402, 409, 410, 422])',
    to: 'new Set([402, 404, 409, 410, 422])',
    test: 'test/bridge/validation.test.ts',
    finds: 'a mistyped address of the validation makes dead letters, and refuses no claim',
  },
];
