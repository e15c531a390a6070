import { readFileSync } from 'node:fs';

/** SQL of the world lives in .sql files beside this one. */
export function setupSql(name: string): string {
  return readFileSync(new URL(`./${name}.sql`, import.meta.url), 'utf8');
}
