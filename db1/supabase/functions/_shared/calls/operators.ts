// What operators do with call sites: which function of schema calls each action is. The admin door and `sluice calls sites` both go
// through here.

import type { CallFunction } from '../call_function.ts';
import { DEFAULT_LIMIT, LIMIT, pageOf } from '../console/list.ts';
import { HttpError } from '../errors.ts';
import { operatorOf, REASON } from '../operator.ts';
import { checked, readQuery } from '../query.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, type Route, readJson } from '../router.ts';
import { withRules } from '../rules.ts';
import type { FromSchema, Schema } from '../schema.ts';
import { ROTATION, SECRET_NAME } from '../webhook/endpoint_settings.ts';
import { type Rotation, rotationArgs, type Signed } from '../webhook/operators.ts';
import { minSecretChars, type Secrets } from '../webhook/secrets.ts';
import type { CallSite } from './store.ts';

/** As the admin door shows it. */
export interface SiteView extends CallSite {
  /** Why one of its secrets cannot be used; only the server that answers knows. */
  readonly secret_fault: string | null;
}

const SITE_ID = { type: 'string', pattern: '^[A-Za-z0-9_:@-]{1,200}$' } as const satisfies Schema;

const SETTINGS = {
  secret_names: { type: 'array', items: SECRET_NAME, maxItems: 5 },
  require_signature: {
    type: 'boolean',
    description:
      'false takes requests without a signature too; Sluice does not recognise their second delivery.',
  },
  kinds: {
    type: ['array', 'null'],
    items: { type: 'string', minLength: 1, maxLength: 100 },
    minItems: 1,
    maxItems: 100,
    description: 'The kinds that it may send; null is any.',
  },
  on_outage: {
    type: 'string',
    pattern: '^(refuse|accept)$',
    description: 'While DB2 is away: refuse answers 503, accept keeps the call in the inbox and answers 2xx.',
  },
} as const;

export const SITE_QUERY = {
  type: 'object',
  properties: { after: SITE_ID, limit: LIMIT },
  additionalProperties: false,
} as const satisfies Schema;

export const SITE_ADD_BODY = {
  type: 'object',
  properties: { site_id: SITE_ID, ...SETTINGS, reason: REASON },
  required: ['site_id'],
  additionalProperties: false,
} as const satisfies Schema;

export const SITE_CHANGE_BODY = {
  type: 'object',
  properties: { ...SETTINGS, is_active: { type: 'boolean' }, reason: REASON },
  additionalProperties: false,
} as const satisfies Schema;

export const SITE_ROTATE_BODY = {
  type: 'object',
  properties: ROTATION,
  required: ['secret_names'],
  additionalProperties: false,
} as const satisfies Schema;

export type NewSite = Omit<FromSchema<typeof SITE_ADD_BODY>, 'reason'>;
export type SiteChanges = Omit<FromSchema<typeof SITE_CHANGE_BODY>, 'reason'>;

export interface SiteStore {
  /** In the order of their ids. */
  listSites(after: string, limit: number): Promise<CallSite[]>;
  /** Page by page. */
  allSites(): Promise<CallSite[]>;
  /** This and the three that follow refuse what is not there, what is there already, and what breaks a rule. */
  showSite(siteId: string): Promise<CallSite>;
  addSite(site: NewSite, by: Signed): Promise<CallSite>;
  changeSite(siteId: string, changes: SiteChanges, by: Signed): Promise<CallSite>;
  rotateSite(siteId: string, rotation: Rotation, by: Signed): Promise<CallSite>;
}

const MOST_AT_ONCE = 1_000;
/** A hundred kinds fit into it. */
const MAX_BODY_BYTES = 16 * 1024;

/** `call` takes names of functions in schema calls. */
export function createSiteStore(call: CallFunction): SiteStore {
  const listSites = (after: string, limit: number) =>
    call<CallSite>('list_sites', { p_after: after, p_limit: limit });
  const showSite = async (siteId: string) => known(await call<CallSite>('find_site', { p_site_id: siteId }));
  return {
    listSites,
    async allSites() {
      const found: CallSite[] = [];
      for (;;) {
        const page = await listSites(found.at(-1)?.site_id ?? '', MOST_AT_ONCE);
        found.push(...page);
        if (page.length < MOST_AT_ONCE) return found;
      }
    },
    showSite,
    async addSite(site, { actor, reason }) {
      const args = {
        p_site_id: site.site_id,
        p_secret_names: site.secret_names ?? [],
        p_require_signature: site.require_signature ?? true,
        p_kinds: site.kinds ?? null,
        p_on_outage: site.on_outage ?? 'refuse',
        p_actor: actor,
        p_reason: reason,
      };
      const [added] = await withRules(call<{ add_site: boolean }>('add_site', args));
      if (added?.add_site !== true) throw new HttpError('site_exists');
      return showSite(site.site_id);
    },
    async changeSite(siteId, changes, { actor, reason }) {
      const args = { p_site_id: siteId, p_changes: changes, p_actor: actor, p_reason: reason };
      return known(await withRules(call<CallSite>('change_site', args)));
    },
    async rotateSite(siteId, rotation, by) {
      const args = { p_site_id: siteId, ...rotationArgs(rotation, by) };
      return known(await withRules(call<CallSite>('rotate_site', args)));
    },
  };
}

function known([site]: readonly CallSite[]): CallSite {
  if (site === undefined) throw new HttpError('unknown_site');
  return site;
}

export interface SiteAdminPorts {
  readonly store: SiteStore;
  /** As the server that verifies sees them. */
  readonly secrets: Pick<Secrets, 'faultOf'>;
}

export function siteAdminRoutes({ store, secrets }: SiteAdminPorts): Route[] {
  const faultOf = (names: readonly string[]) => secrets.faultOf(names, minSecretChars());
  const withFault = async (site: CallSite): Promise<SiteView> => ({
    ...site,
    secret_fault: (await faultOf(site.secret_names)) ?? null,
  });
  /** Secrets that are named now must exist; those named before may be missing, and the list says so. */
  const requireSecrets = async (names: readonly string[] = []): Promise<void> => {
    const fault = await faultOf(names);
    if (fault !== undefined) throw new HttpError('invalid_input', fault);
  };
  const answer = async (status: number, site: CallSite): Promise<HttpResponse> =>
    jsonResponse(status, await withFault(site));
  const idOf = (given: string): string => checked(SITE_ID, given, 'The site');

  async function list(request: HttpRequest): Promise<HttpResponse> {
    const { after = '', limit = DEFAULT_LIMIT } = readQuery(request.query, SITE_QUERY);
    const sites = await Promise.all((await store.listSites(after, limit)).map(withFault));
    return pageOf(sites, limit, ({ site_id }) => site_id);
  }
  async function add(request: HttpRequest): Promise<HttpResponse> {
    const { reason = null, ...site } = readJson(request, SITE_ADD_BODY);
    await requireSecrets(site.secret_names);
    return answer(201, await store.addSite(site, { actor: operatorOf(request), reason }));
  }
  async function change(request: HttpRequest, siteId: string): Promise<HttpResponse> {
    const { reason = null, ...changes } = readJson(request, SITE_CHANGE_BODY);
    await requireSecrets(changes.secret_names);
    const by = { actor: operatorOf(request), reason };
    return answer(200, await store.changeSite(idOf(siteId), changes, by));
  }
  async function rotate(request: HttpRequest, siteId: string): Promise<HttpResponse> {
    const { secret_names, only = false, reason = null } = readJson(request, SITE_ROTATE_BODY);
    await requireSecrets(secret_names);
    const by = { actor: operatorOf(request), reason };
    return answer(200, await store.rotateSite(idOf(siteId), { secretNames: secret_names, only }, by));
  }
  return [
    { method: 'GET', path: '/admin/sites', handle: list },
    { method: 'POST', path: '/admin/sites', maxBodyBytes: MAX_BODY_BYTES, handle: add },
    {
      method: 'GET',
      path: '/admin/sites/:site',
      handle: async (_, siteId) => answer(200, await store.showSite(idOf(siteId))),
    },
    { method: 'POST', path: '/admin/sites/:site', maxBodyBytes: MAX_BODY_BYTES, handle: change },
    { method: 'POST', path: '/admin/sites/:site/rotate', handle: rotate },
  ];
}
