// What an admin does with those who deliver: endpoints of providers, and call sites.

import { post } from './api.ts';

/** For the audit log. */
export interface Why {
  readonly reason?: string;
}

export interface SenderCalls {
  change(changes: Readonly<Record<string, unknown>>, why: Why): Promise<unknown>;
  rotate(
    rotation: { readonly secret_names: readonly string[]; readonly only: boolean },
    why: Why,
  ): Promise<unknown>;
}

export function endpointCalls(name: string): SenderCalls {
  const path = '/admin/webhooks/endpoints';
  return {
    change: (changes, why) => post(`${path}/change`, { name, changes, ...why }),
    rotate: (rotation, why) => post(`${path}/rotate`, { name, ...rotation, ...why }),
  };
}

export function siteCalls(site: string): SenderCalls {
  const path = `/admin/sites/${encodeURIComponent(site)}`;
  return {
    change: (changes, why) => post(path, { ...changes, ...why }),
    rotate: (rotation, why) => post(`${path}/rotate`, { ...rotation, ...why }),
  };
}
