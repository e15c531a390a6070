// Both databases before either is changed: what `migrate` would do, and what stands in its way.

import { StackError } from '../failure.ts';
import { refuseEdited, TITLES } from './edited.ts';
import { refuseMisplaced, type SideName, sideOf } from './sides.ts';
import { withClient } from './sql.ts';
import { type Survey, survey } from './survey.ts';

type Urls = Readonly<Record<SideName, string>>;

/** Throws where the two addresses are not those of an intake and a ledger of this version. Changes nothing. */
export async function lookAtBoth(urls: Urls, willAdopt: boolean): Promise<Survey[]> {
  refuseMisplaced({ db1: await withClient(urls.db1, sideOf), db2: await withClient(urls.db2, sideOf) });
  await refuseEdited(urls, 'own');
  const surveys: Survey[] = [];
  for (const side of ['db1', 'db2'] as const)
    surveys.push(await withClient(urls[side], (client) => survey(client, side, willAdopt)));
  return surveys;
}

export const isFree = (surveys: readonly Survey[]): boolean =>
  surveys.every(({ obstacles }) => obstacles.length === 0);

export function refuseObstacles(surveys: readonly Survey[]): void {
  if (isFree(surveys)) return;
  const found = surveys.flatMap(({ side, obstacles }) =>
    obstacles.map(({ what, hint }) => ({ what: `${TITLES[side]}: ${what}`, hint })),
  );
  throw new StackError(
    [...found.map(({ what }) => what), 'Neither database was changed.'].join('\n'),
    [...new Set(found.map(({ hint }) => hint))].join('\nhint: '),
  );
}

/** As a person reads it. */
export function planText(surveys: readonly Survey[]): string {
  return surveys
    .map((one) => [headOf(one), ...linesOf(one).map((line) => `  ${line}`)].join('\n'))
    .join('\n\n');
}

const headOf = ({ side, database, role, server_version }: Survey): string =>
  `${TITLES[side]}: database ${database}, as ${role}, Postgres ${server_version}`;

function linesOf({ platform, adopts, migrations, left_alone, obstacles }: Survey): string[] {
  const changes = [...platform, ...adopts, ...migrations.map((file) => `${file} is applied`)];
  return [
    ...(changes.length === 0 ? ['up to date'] : changes),
    ...left_alone.map((what) => `left alone: ${what}`),
    ...obstacles.flatMap(({ what, hint }) => [`in the way: ${what}`, `  hint: ${hint}`]),
  ];
}
