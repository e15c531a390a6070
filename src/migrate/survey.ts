// What `migrate` would do to one database, and what stands in its way. Looking changes nothing.

import { join } from 'node:path';
import type pg from 'pg';
import { PROJECT_ROOT } from '../project_root.ts';
import { lookAtAdoption } from './adopt/look.ts';
import { ADOPTED_TABLES, REPLACED_FUNCTIONS, STATUS_TYPE } from './adopt/tables.ts';
import { SCHEMA_OF_EXTENSION } from './platform/platform.ts';
import { listMigrations, type Migration, recordedMigrations } from './recorded.ts';
import type { SideName } from './sides.ts';
import { sqlFile } from './sql.ts';

export interface Obstacle {
  readonly what: string;
  readonly hint: string;
}

export interface Survey {
  readonly side: SideName;
  readonly database: string;
  readonly role: string;
  readonly server_version: string;
  /** What is made besides the migrations: roles, schemas, extensions. */
  readonly platform: readonly string[];
  /** What is done to tables that are taken over. */
  readonly adopts: readonly string[];
  /** The files that are applied. */
  readonly migrations: readonly string[];
  /** What stands in public and is not ours: neither it nor its rights are changed. */
  readonly left_alone: readonly string[];
  readonly obstacles: readonly Obstacle[];
}

const OLDEST_SERVER_VERSION = 150_000;
const ROLES = ['anon', 'authenticated', 'service_role', 'authenticator'] as const;
const ROLES_HINT = 'have a superuser run what `npx sluice migrate --roles` prints, once on this server';

const FACTS = `
  select current_database() as database, r.rolname as role, current_setting('server_version') as server_version,
    current_setting('server_version_num')::int as version, r.rolsuper as is_super, r.rolcreaterole as may_make_roles,
    r.rolbypassrls as passes_rls, has_database_privilege(current_database(), 'create') as may_make_schemas,
    has_schema_privilege('public', 'create') as may_use_public,
    (select pg_has_role(n.nspowner, 'usage') from pg_namespace n where n.nspname = 'public') as owns_public,
    array(
      select o.name from unnest($1::text[]) with ordinality as o (name, place)
      where not exists (select from pg_roles e where e.rolname = o.name) order by o.place
    ) as missing_roles,
    (select count(distinct m.roleid)::int from pg_auth_members m join pg_roles g on g.oid = m.member
      join pg_roles o on o.oid = m.roleid
      where g.rolname = 'authenticator' and o.rolname in ('anon', 'authenticated', 'service_role')) as memberships,
    (select e.rolbypassrls from pg_roles e where e.rolname = 'service_role') as service_passes_rls,
    to_regnamespace('auth') is null as lacks_auth, to_regnamespace('extensions') is null as lacks_extensions
  from pg_roles r where r.rolname = current_user`;

type Facts = {
  database: string;
  role: string;
  server_version: string;
  version: number;
  is_super: boolean;
  may_make_roles: boolean;
  passes_rls: boolean;
  may_make_schemas: boolean;
  may_use_public: boolean;
  owns_public: boolean;
  missing_roles: string[];
  memberships: number;
  service_passes_rls: boolean | null;
  lacks_auth: boolean;
  lacks_extensions: boolean;
};

/** `willAdopt`: tables of the requirements' shape are taken over instead of standing in the way. */
export async function survey(client: pg.Client, side: SideName, willAdopt: boolean): Promise<Survey> {
  const facts: Facts = (await client.query(FACTS, [ROLES])).rows[0];
  const { database, role, server_version } = facts;
  const seen = { side, database, role, server_version };
  if (facts.version < OLDEST_SERVER_VERSION) {
    const old = { what: `it is an older Postgres than 15`, hint: 'upgrade it: views and grants need 15' };
    return { ...seen, platform: [], adopts: [], migrations: [], left_alone: [], obstacles: [old] };
  }
  const missing = await missingMigrations(client, side);
  const extensions = missing.length === 0 ? NOTHING : await lookAtExtensions(client, facts);
  const adoption =
    willAdopt && side === 'db2' && isBeforeEvents(missing)
      ? await lookAtAdoption(client)
      : { steps: [], obstacles: [] };
  const names = namesMadeBy(missing);
  return {
    ...seen,
    platform: [...platformOf(facts), ...extensions.platform],
    adopts: adoption.steps.map(({ what }) => what),
    migrations: missing.map(({ file }) => file),
    left_alone: missing.length === 0 ? [] : await foreignObjects(client, side),
    obstacles: [
      ...rightsMissing(facts, missing.length > 0),
      ...extensions.obstacles,
      ...(await collisions(client, side, names, willAdopt)),
      ...adoption.obstacles,
    ],
  };
}

const NOTHING: { platform: string[]; obstacles: Obstacle[] } = { platform: [], obstacles: [] };

async function missingMigrations(client: pg.Client, side: SideName): Promise<Migration[]> {
  const versions = new Set((await recordedMigrations(client)).map(({ version }) => version));
  return listMigrations(join(PROJECT_ROOT, side)).filter(({ version }) => !versions.has(version));
}

/** Tables are taken over before the migration that would make them. */
const isBeforeEvents = (missing: readonly Migration[]): boolean =>
  missing.some(({ name }) => name === 'webhooks');

function platformOf(facts: Facts): string[] {
  return [
    ...facts.missing_roles.map((role) => `role ${role} is made`),
    ...(facts.lacks_auth ? ['schema auth is made, with uid(), role() and jwt()'] : []),
    ...(facts.lacks_extensions ? ['schema extensions is made'] : []),
  ];
}

function rightsMissing(facts: Facts, hasMigrations: boolean): Obstacle[] {
  const { role, database } = facts;
  const obstacles: Obstacle[] = [];
  const needsBypass = facts.missing_roles.includes('service_role');
  // Before 16 only a superuser gives it away, since then also a role that has it.
  const mayGiveBypass = facts.version >= 160_000 && facts.passes_rls;
  if (
    facts.missing_roles.length > 0 &&
    !facts.is_super &&
    !(facts.may_make_roles && (!needsBypass || mayGiveBypass))
  )
    obstacles.push({
      what: `the roles ${facts.missing_roles.join(', ')} are missing, and ${role} may not make ${needsBypass ? 'all of them' : 'them'}`,
      hint: ROLES_HINT,
    });
  else if (facts.missing_roles.length === 0 && facts.memberships < 3 && !facts.is_super)
    obstacles.push({
      what: `authenticator cannot become anon, authenticated and service_role`,
      hint: ROLES_HINT,
    });
  if (facts.service_passes_rls === false)
    obstacles.push({
      what: 'the role service_role has no bypassrls, so that it would see no rows',
      hint: 'as a superuser: alter role service_role bypassrls',
    });
  if (!hasMigrations || facts.is_super) return obstacles;
  if (!facts.may_make_schemas)
    obstacles.push({
      what: `${role} may not make schemas in ${database}`,
      hint: `make it the owner: alter database ${database} owner to ${role}`,
    });
  if (!facts.may_use_public || !facts.owns_public)
    obstacles.push({
      what: `${role} does not own the schema public of ${database}`,
      hint: `as its owner: alter schema public owner to ${role}`,
    });
  return obstacles;
}

async function lookAtExtensions(client: pg.Client, { role, is_super }: Facts): Promise<typeof NOTHING> {
  const found: typeof NOTHING = { platform: [], obstacles: [] };
  for (const [name, schema] of Object.entries(SCHEMA_OF_EXTENSION)) {
    const { rows } = await client.query(
      `select has_schema_privilege(n.oid, 'create') as is_open from pg_namespace n where n.nspname = $1`,
      [schema],
    );
    const { rows: missing } = await client.query(sqlFile('./platform/extension_is_missing.sql'), [
      name,
      schema,
    ]);
    if (rows.length === 0)
      found.platform.push(
        missing[0].missing ? `${name} is put in place as plain SQL` : `extension ${name} is created`,
      );
    else if (name === 'pgmq' && !is_super && !rows[0].is_open)
      found.obstacles.push({
        what: `the schema pgmq is not ${role}'s, so that it cannot make queues`,
        hint: 'drop the extension: Sluice then puts pgmq in place itself; or connect as the owner of pgmq',
      });
  }
  return found;
}

interface MadeName {
  readonly kind: string;
  readonly name: string;
}

const MADE =
  /^create (?:or replace )?(?:unlogged )?(table|type|domain|view|sequence|schema|function|procedure) (if not exists )?([\w.]+)/gm;

/** What the migrations make, by the statements that stand at the beginning of a line. */
export function namesMadeBy(migrations: readonly Pick<Migration, 'text'>[]): MadeName[] {
  const names = new Map<string, MadeName>();
  for (const { text } of migrations)
    for (const [, kind = '', ifMissing, name = ''] of text.matchAll(MADE))
      if (!(kind === 'schema' && ifMissing)) names.set(`${kind} ${name}`, { kind, name });
  return [...names.values()];
}

const EXISTING = `
  select o.kind, o.name
  from unnest($1::text[], $2::text[]) as o (kind, name)
  where case
    when o.kind = 'schema' then to_regnamespace(o.name) is not null
    when o.kind in ('type', 'domain') then to_regtype(o.name) is not null
    when o.kind in ('function', 'procedure') then exists (
      select from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname || '.' || p.proname = o.name
    )
    else to_regclass(o.name) is not null
  end`;

const ADOPTED_NAMES: ReadonlySet<string> = new Set([
  ...ADOPTED_TABLES.map(({ name }) => name),
  ...REPLACED_FUNCTIONS,
  STATUS_TYPE,
]);

async function collisions(
  client: pg.Client,
  side: SideName,
  names: readonly MadeName[],
  willAdopt: boolean,
): Promise<Obstacle[]> {
  const makesEvents = names.some(({ name }) => name === 'public.webhook_events');
  const asked = makesEvents ? [...names, { kind: 'type', name: STATUS_TYPE }] : names;
  const { rows } = await client.query<MadeName>(EXISTING, [
    asked.map(({ kind }) => kind),
    asked.map(({ name }) => name),
  ]);
  const isAdoptable = (name: string): boolean => side === 'db2' && ADOPTED_NAMES.has(name);
  return rows
    .filter(({ name }) => !(willAdopt && isAdoptable(name)))
    .map(({ kind, name }) => ({
      what: `there is a ${kind} ${name} that is not of Sluice`,
      hint: isAdoptable(name)
        ? '`npx sluice migrate --plan --adopt` shows how Sluice would take it over'
        : `rename it, or give ${side === 'db1' ? 'the intake' : 'the ledger'} a database of its own`,
    }));
}

const FOREIGN = `
  select o.what
  from (
    select case c.relkind when 'v' then 'view ' when 'm' then 'view ' else 'table ' end || c.relname as what, c.relname as name,
      'pg_class'::regclass as catalog, c.oid
    from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f')
    union all
    select 'function ' || p.oid::regprocedure, p.proname, 'pg_proc'::regclass, p.oid
    from pg_proc p where p.pronamespace = 'public'::regnamespace
  ) o
  where not exists (select from pg_depend d where d.classid = o.catalog and d.objid = o.oid and d.deptype = 'e')
    and o.name <> all ($1)
  order by 1`;

async function foreignObjects(client: pg.Client, side: SideName): Promise<string[]> {
  const ours = namesMadeBy(listMigrations(join(PROJECT_ROOT, side)));
  const { rows } = await client.query(FOREIGN, [ours.map(({ name }) => name.replace(/^public\./, ''))]);
  return rows.map(({ what }) => what);
}
