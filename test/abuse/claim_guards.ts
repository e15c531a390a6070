// The guards that stand between a stranger and another buyer, and how each is switched off and on again.

import { patch, script } from '../../chaos/controls/patches.ts';

/** What the stranger guesses the victim's secret to be. */
export const GUESS = 'a-guess-of-the-stranger';

export interface Guard {
  readonly side: 'db1' | 'db2';
  readonly off: string;
  readonly on: string;
}

/** The guard as places of functions, taken out and put back. */
export function inFunctions(
  side: 'db1' | 'db2',
  ...places: [name: string, there: string, gone: string][]
): Guard {
  return {
    side,
    off: script(...places.map((place) => patch(...place))),
    on: script(...places.map(([name, there, gone]) => patch(name, gone, there))),
  };
}

/** The stranger's guess is the claim's secret: what remains of the attack is the way to it. */
export const RIGHT_GUESS: Guard = {
  side: 'db1',
  off: `create function public.guessed() returns trigger language plpgsql as $$
    begin new.secret_hash := sha256('${GUESS}'); return new; end $$;
    create trigger guessed before insert on public.claims for each row execute function public.guessed()`,
  on: 'drop trigger guessed on public.claims; drop function public.guessed()',
};

export const NAMESPACE_OF_LIMITS = inFunctions('db1', [
  'intake.live_claims(text, text, boolean, int)',
  'c.verified = p_verified and c.freed_at',
  'true and c.freed_at',
]);
/** A request id is one request for all users. */
export const OWNER_OF_REQUESTS = inFunctions('db1', [
  'intake.request_key(text, text, text, boolean, bytea)',
  "p_user_id || e'\\n' || p_verified::text || e'\\n', 'UTF8')\n      || coalesce(p_secret_hash, '')",
  "e'\\n', 'UTF8')",
]);
export const VISIBLE_TICKETS: Guard = {
  side: 'db2',
  off: 'alter policy own_tickets on public.confirmed_tickets using ((select auth.uid())::text = user_id)',
  on: 'alter policy own_tickets on public.confirmed_tickets using ((select auth.uid())::text = user_id and verified)',
};
export const FORM_OF_IDS = inFunctions('db1', [
  'intake.check_ids(text[], text[])',
  'if v_wrong is not null then',
  'if false and v_wrong is not null then',
]);
export const WAY_PAST_THE_SERVER = inFunctions('db1', [
  'intake.gate_for(intake.pool_gates, intake.claim_request)',
  'when p_request.address is null and',
  'when false and p_request.address is null and',
]);
export const NO_STATISTICS: Guard = {
  side: 'db2',
  off: 'alter table public.confirmed_tickets alter user_id set statistics 100; analyze public.confirmed_tickets',
  on: `alter table public.confirmed_tickets alter user_id set statistics 0;
    delete from pg_catalog.pg_statistic where starelid = 'public.confirmed_tickets'::regclass; analyze public.confirmed_tickets`,
};
