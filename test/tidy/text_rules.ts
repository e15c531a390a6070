import { existsSync } from 'node:fs';
import { join, posix } from 'node:path';
import { type Finding, findMatches, type Project, type SourceFile } from './project.ts';

const DEPENDENCIES_PAGE = 'docs/dependencies.md';

/** This checker has to name what it forbids, and the lock file is a machine's text. */
const isProse = (file: SourceFile): boolean =>
  !file.path.startsWith('test/tidy/') && file.path !== 'package-lock.json';

/** Paths that exist on one machine only. */
export function noMachinePaths(project: Project): Finding[] {
  const pattern = /(?<![\w.~-])\/(?:work|farm|root)\/|(?<![\w.~-])\/home\/[a-z][\w-]*\//g;
  return inProse(project, pattern, 'machine-path', (match) => `${match[0]} exists on one machine only`);
}

export function noLeftoverMarks(project: Project): Finding[] {
  return inProse(
    project,
    /\b(TODO|FIXME|XXX)\b/g,
    'leftover',
    (match) => `${match[0]}: do it or write it down as a known gap`,
  );
}

/** The code is about claims and tickets, not about who or what typed it. */
export function noWordsAboutTools(project: Project): Finding[] {
  const pattern =
    /\b([Cc]laude|[Aa]nthropic|[Oo]pen[Aa][Ii]|[Cc]hat[Gg][Pp][Tt]|[Gg][Pp][Tt]-?\d\w*|[Cc]opilot|LLMs?|AI|[Ll]anguage models?|[Aa]ssistants?)\b/g;
  return inProse(project, pattern, 'off-topic', (match) => `"${match[0]}" has no place here`);
}

/** Addresses of one registry in the lock file tie every checkout to that registry. */
export function noResolvedAddresses(project: Project): Finding[] {
  return project.files
    .filter((file) => file.path === 'package-lock.json')
    .flatMap((file) =>
      findMatches(
        file.path,
        file.text,
        /"resolved"\s*:\s*"(?!packages\/)([^"]*)"/g,
        'lock-address',
        (match) => `names ${match[1]}`,
      ),
    );
}

/** Each runtime dependency is a choice, and the choice is written down. */
export function dependenciesExplained(project: Project): Finding[] {
  const manifest = project.files.find((file) => file.path === 'package.json');
  if (manifest === undefined) return [];
  const page = project.files.find((file) => file.path === DEPENDENCIES_PAGE)?.text ?? '';
  const { dependencies = {}, optionalDependencies = {} } = JSON.parse(manifest.text) as {
    dependencies?: Record<string, string>;
    optionalDependencies?: Record<string, string>;
  };
  return Object.keys({ ...dependencies, ...optionalDependencies })
    .filter((name) => !page.includes(`\`${name}\``))
    .map((name) => ({
      file: manifest.path,
      line: manifest.text.slice(0, manifest.text.indexOf(`"${name}"`)).split('\n').length,
      rule: 'dependency',
      message: `${name} has no line in ${DEPENDENCIES_PAGE}`,
    }));
}

/** Relative links in the documents lead somewhere. */
export function linksLead(project: Project): Finding[] {
  return project.files
    .filter((file) => file.path.endsWith('.md'))
    .flatMap((file) => {
      const prose = file.text.replace(/^```[\s\S]*?^```/gm, (block) => block.replace(/[^\n]/g, ' '));
      const leadsNowhere = (match: RegExpMatchArray): boolean => {
        const target = (match[1] ?? '').split('#')[0] ?? '';
        if (target === '' || /^[a-z]+:/i.test(target)) return false;
        return !existsSync(join(project.root, posix.join(posix.dirname(file.path), decodeURI(target))));
      };
      return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].filter(leadsNowhere).map((match) => ({
        file: file.path,
        line: prose.slice(0, match.index).split('\n').length,
        rule: 'dead-link',
        message: `${match[1]} does not exist`,
      }));
    });
}

function inProse(
  project: Project,
  pattern: RegExp,
  rule: string,
  message: (match: RegExpMatchArray) => string,
): Finding[] {
  return project.files
    .filter(isProse)
    .flatMap((file) => findMatches(file.path, file.text, pattern, rule, message));
}
