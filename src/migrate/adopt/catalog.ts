// A table as it stands in a database.

import type pg from 'pg';

export interface FoundColumn {
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly isFilled: boolean;
}

interface FoundKey {
  readonly columns: readonly string[];
  readonly index: string;
  /** Null for an index without a constraint. */
  readonly constraint: string | null;
  readonly isPrimary: boolean;
}

export interface FoundTable {
  readonly owner: string;
  readonly isOwned: boolean;
  readonly kind: string;
  readonly columns: readonly FoundColumn[];
  readonly keys: readonly FoundKey[];
  readonly constraints: readonly FoundConstraint[];
  /** That are partial or of expressions, with all they say. */
  readonly choosyIndexes: readonly { readonly name: string; readonly text: string }[];
}

export interface FoundConstraint {
  readonly name: string;
  /** As pg_constraint has it: f foreign key, c check, p and u keys. */
  readonly kind: string;
  readonly columns: readonly string[];
}

const TABLE = `
  select c.relowner::regrole::text as owner, pg_has_role(c.relowner, 'usage') as "isOwned", c.relkind::text as kind,
    coalesce((
      select jsonb_agg(jsonb_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
        'isRequired', a.attnotnull, 'isFilled', a.atthasdef or a.attidentity <> '') order by a.attnum)
      from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    ), '[]') as columns,
    coalesce((
      select jsonb_agg(jsonb_build_object('index', i.indexrelid::regclass::text, 'isPrimary', i.indisprimary,
        'constraint', (select k.conname from pg_constraint k where k.conindid = i.indexrelid and k.contype in ('p', 'u')),
        'columns', (
          select jsonb_agg(a.attname order by p.place)
          from unnest(i.indkey::int2[]) with ordinality as p (attnum, place)
          join pg_attribute a on a.attrelid = c.oid and a.attnum = p.attnum
        )))
      from pg_index i
      where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indimmediate and i.indpred is null
        and i.indexprs is null and i.indnatts = i.indnkeyatts
    ), '[]') as keys,
    coalesce((
      select jsonb_agg(jsonb_build_object('name', k.conname, 'kind', k.contype, 'columns', array(
        select a.attname from pg_attribute a where a.attrelid = c.oid and a.attnum = any (k.conkey) order by 1
      )))
      from pg_constraint k where k.conrelid = c.oid
    ), '[]') as constraints,
    coalesce((
      select jsonb_agg(jsonb_build_object('name', i.indexrelid::regclass::text,
        'text', concat_ws(' ', pg_get_expr(i.indpred, c.oid), pg_get_expr(i.indexprs, c.oid))))
      from pg_index i where i.indrelid = c.oid and (i.indpred is not null or i.indexprs is not null)
    ), '[]') as "choosyIndexes"
  from pg_class c
  where c.oid = to_regclass($1)`;

/** Undefined where there is none of this name. */
export async function findTable(client: pg.Client, name: string): Promise<FoundTable | undefined> {
  const { rows } = await client.query(TABLE, [name]);
  return rows[0];
}

/** The labels of an enum in their order; undefined where the database has no such type. */
export async function labelsOf(client: pg.Client, type: string): Promise<string[] | undefined> {
  const { rows } = await client.query(
    `select array(select e.enumlabel::text from pg_enum e where e.enumtypid = to_regtype($1) order by e.enumsortorder) as labels
     where to_regtype($1) is not null`,
    [type],
  );
  return rows[0]?.labels;
}
