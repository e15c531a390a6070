import assert from 'node:assert/strict';
import test from 'node:test';
import { findFunctions } from './sql_functions.ts';
import { codeWithBodies, splitStatements } from './sql_scan.ts';

test('statements end at semicolons outside quotes, dollar quotes and comments', () => {
  const text = `-- a; comment
begin;
select 'a;b', "c;d", e'it\\'s;';
do $x$ begin perform 1; /* ; */ end $x$; /* x; /* nested; */ y */
select $$;$$, $1`;
  assert.deepEqual(
    splitStatements(text).map(({ sql, line }) => [line, sql]),
    [
      [2, 'begin;'],
      [3, `select 'a;b', "c;d", e'it\\'s;';`],
      [4, 'do $x$ begin perform 1; /* ; */ end $x$;'],
      [5, 'select $$;$$, $1'],
    ],
  );
});

test('a script that ends in a comment has no statement after it', () => {
  assert.deepEqual(splitStatements('select 1; -- done\n'), [{ sql: 'select 1;', line: 1 }]);
});

test('bodies are looked into, comments and strings in them are blanked', () => {
  assert.equal(codeWithBodies(`as $$ A 'B' -- C\n$$`), `as    A         \n  `);
});

test('a signature keeps input types only: names, defaults, modes and result columns go', () => {
  const text = `create or replace function webhook.f(
    p_a int default (1 + 2), in p_b timestamp with time zone, variadic p_c text[], out o_d int, p_e numeric(10, 2) = 3
  ) returns int language sql as $$ select 1 $$;`;
  assert.deepEqual(
    findFunctions(text).map((fn) => fn.signature),
    ['webhook.f(integer, timestamptz, text[], numeric)'],
  );
});

test('a function without a schema is taken to be in public', () => {
  const text = 'create function f() returns int language sql as $$ select 1 $$;';
  assert.equal(findFunctions(text)[0]?.signature, 'public.f()');
});
