// `select * from schema.function(p_a => $1, …)`, made once per function and set of argument names.

import type pg from 'pg';
import { parameter } from './values.ts';

export interface Statement {
  /** The name of the prepared statement: the server parses and plans it once per connection. */
  readonly name: string;
  readonly text: string;
}

const FUNCTION = /^[a-z_][a-z0-9_]*\.(?:[a-z_][a-z0-9_]*|"(?:[^"]|"")+")$/;
const ARGUMENT = /^[a-z_][a-z0-9_]*$/;

/** A name that people chose, as SQL reads it: `myCommit` is another function than `mycommit`. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

// As many entries as the code has call sites, and one for each function that a pool commits by.
const statements = new Map<string, Statement>();

export function statementFor(functionName: string, argumentNames: readonly string[]): Statement {
  const key = `${functionName}(${argumentNames.join()})`;
  let statement = statements.get(key);
  if (statement === undefined) {
    if (!FUNCTION.test(functionName))
      throw new Error(`not a schema-qualified function name: ${functionName}`);
    const wrong = argumentNames.find((name) => !ARGUMENT.test(name));
    if (wrong !== undefined) throw new Error(`not an argument name: ${wrong}`);
    const list = argumentNames.map((name, index) => `${name} => $${index + 1}`).join(', ');
    statement = { name: `sluice_${statements.size + 1}`, text: `select * from ${functionName}(${list})` };
    statements.set(key, statement);
  }
  return statement;
}

export function queryFor(functionName: string, args: Record<string, unknown>): pg.QueryConfig {
  const names = Object.keys(args);
  const { name, text } = statementFor(functionName, names);
  return { name, text, values: names.map((key) => parameter(args[key])) };
}
