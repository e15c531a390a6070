import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvLine } from '#core/search/csv.ts';

test('a field with a comma, a quote or a line break is quoted, and nothing else is', () => {
  assert.equal(csvLine(['a', 'b c', 'd,e', 'f"g', 'h\ni']), 'a,b c,"d,e","f""g","h\ni"\r\n');
});

test('null is empty, objects are JSON, false and zero are themselves', () => {
  assert.equal(csvLine([null, undefined, { a: 1 }, false, 0]), ',,"{""a"":1}",false,0\r\n');
});

test('what a spreadsheet would run as a formula is text, and a number below zero stays a number', () => {
  assert.equal(csvLine(['=1+1', '+cmd', '@x', '-2', '-x', '\tx']), "'=1+1,'+cmd,'@x,-2,'-x,'\tx\r\n");
});
