// What an operator's role does not allow is not offered. The server decides; this spares a refusal.

import type { ComponentChildren } from 'preact';
import { ADMIN_ROLES, allows } from '../../db1/supabase/functions/_shared/roles.ts';
import { operator } from '../lib/api.ts';
import { useStore } from '../lib/store.ts';

/** `route` is "METHOD /path". While the server has not said who is here, everything is offered. */
export function useMay(route: string): boolean {
  const who = useStore(operator);
  const least = ADMIN_ROLES[route];
  return who === undefined || least === undefined || allows(who.role, least);
}

export function May({ do: route, children }: { do: string; children: ComponentChildren }): ComponentChildren {
  return useMay(route) ? children : null;
}
