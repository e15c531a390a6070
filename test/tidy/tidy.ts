import { deadSql, deadTypeScript } from './dead_files.ts';
import { type Finding, type Rule, readProject } from './project.ts';
import { functionDefinedOnce, functionShape, lowerCaseSql } from './sql_rules.ts';
import {
  dependenciesExplained,
  linksLead,
  noLeftoverMarks,
  noMachinePaths,
  noResolvedAddresses,
  noWordsAboutTools,
} from './text_rules.ts';
import {
  coreImportsOnlyItself,
  fileLength,
  noForgottenTimeouts,
  noSqlInTypeScript,
  noSqlstateOutsideTheTable,
  noSwitchedOffTests,
} from './ts_rules.ts';

const RULES: readonly Rule[] = [
  functionShape,
  functionDefinedOnce,
  lowerCaseSql,
  fileLength,
  noSqlInTypeScript,
  noSqlstateOutsideTheTable,
  coreImportsOnlyItself,
  noSwitchedOffTests,
  noForgottenTimeouts,
  deadTypeScript,
  deadSql,
  noMachinePaths,
  noLeftoverMarks,
  noWordsAboutTools,
  noResolvedAddresses,
  dependenciesExplained,
  linksLead,
];

/** What people forget, found in the tree below `root`. */
export function checkTidy(root: string): Finding[] {
  const project = readProject(root);
  return RULES.flatMap((rule) => rule(project));
}

export function formatFinding({ file, line, rule, message }: Finding): string {
  return `${file}:${line} ${rule} ${message}`;
}
