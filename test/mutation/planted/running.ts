// Bugs of how the product runs, as they would come back.

import type { Bug } from '../bugs.ts';

export const RUNNING: readonly Bug[] = [
  {
    name: 'npx-child-stays',
    was: 'SIGTERM to npx left its child running',
    file: 'src/stop_signal.ts',
    from: 'process.env.npm_lifecycle_event !== undefined',
    to: "process.env.npm_lifecycle_event === 'start'",
    test: 'test/work/npm_parent.test.ts',
    finds: 'ends `npx sluice work`, which hands back what it holds',
  },
  {
    name: 'secrets-read-once',
    was: 'a new secret needed a restart',
    file: 'src/webhook/secret_source.ts',
    from: 'if (now !== version) {',
    to: 'if (false) {',
    test: 'test/webhook/secrets.test.ts',
    finds: 'change with the file, without a restart',
  },
  {
    name: 'away-for-ever',
    was: 'demo --outage said that the ledger is away after it was back',
    file: 'src/demo/progress.ts',
    from: "  return ledgerAnswers ? [] : ['The ledger does not answer: claims go on, tickets wait.'];\n}\n",
    to:
      '  wasAway ||= !ledgerAnswers;\n' +
      "  return wasAway ? ['The ledger does not answer: claims go on, tickets wait.'] : [];\n}\n\n" +
      'let wasAway = false;\n',
    test: 'test/demo/demo.test.ts',
    finds: 'says that the ledger is back when it is, and never after that that it is away',
  },
  {
    name: 'unread-output',
    was: 'the program ended badly when the reader of its output left',
    file: 'src/cli.ts',
    from: "new Set(['EPIPE', 'EIO'])",
    to: "new Set(['EIO'])",
    test: 'test/stack/dev.test.ts',
    finds: 'ends well after the reader of its output has left, a closed window or `| head`',
  },
  {
    name: 'one-builder',
    was: 'a command failed while another command made the same build',
    file: 'tools/build.js',
    from: 'if (!existsSync(target)) throw error;',
    to: 'throw error;',
    test: 'test/house/build.test.ts',
    finds: 'is whole for all commands that start while it is made',
  },
  {
    name: 'slots-added-again',
    was: 'a lost answer to "add slots" added them twice',
    file: 'src/commands/pools.ts',
    from: 'const { slots: add_slots, request_id } = step;',
    to: "const { slots: add_slots } = step;\n  const request_id = values['request-id'];",
    test: 'test/cli/operate.test.ts',
    finds: 'asks again when an answer is lost or cut off, and no slot is there twice',
  },
  {
    name: 'no-pool-in-an-outage',
    was: 'a pool could not be made while another cell was away',
    file: 'src/fleet/fleet.ts',
    from: 'const { place, meantFor } = await this.#lookUps.submit(poolId);',
    to:
      'const { place, meantFor, away } = await this.#lookUps.submit(poolId);\n' +
      '    if (place === undefined && away.length > 0) throw cellAway(away);',
    test: 'test/fleet/doors.test.ts',
    finds: 'a cell that is down costs its own pools only, and nothing is lost when it is back',
  },
  {
    name: 'pool-made-twice',
    was: 'a pool whose cell was lost while it was made could be made a second time in another cell',
    file: 'src/fleet/one_intake.ts',
    from: '    if (isUnavailable(error)) await fleet.tellPlace(poolId, cell);\n',
    to: '',
    test: 'test/fleet/doors.test.ts',
    finds: 'a pool whose cell is lost while it is made is not made a second time elsewhere',
  },
  {
    name: 'placed-in-a-drained-cell',
    was: 'a server placed a new pool in a cell that was being drained',
    file: 'src/fleet/one_intake.ts',
    from: '[...fleet.here.values()].filter(({ is_draining }) => !is_draining);',
    to: '[...fleet.here.values()];',
    test: 'test/fleet/cli.test.ts',
    finds: 'an operator adds cells, places a pool, moves it and drains a cell',
  },
  {
    name: 'endless-erasure',
    was: 'an erasure with nothing to write never ended',
    file: 'db2/supabase/migrations/20260224100000_db2_ledger.sql',
    from: 'public.users_now(p_claim_ids, p_user_ids) is not distinct from v_user_ids;',
    to: 'public.users_now(p_claim_ids, p_user_ids) = v_user_ids;',
    test: 'db2/supabase/tests/operators/erase.test.sql',
    finds: 'nothing to write is written at once',
  },
  {
    name: 'outage-cut-short',
    was: 'demo --outage was shorter than asked for, because the connection that held the outage ended before',
    file: 'src/demo/outage.ts',
    from: '  return () => void answer.body?.cancel();',
    to: '  setTimeout(() => void answer.body?.cancel(), 100);\n  return () => undefined;',
    test: 'test/demo/demo.test.ts',
    finds: 'tells of the outage what the databases themselves say',
  },
];
