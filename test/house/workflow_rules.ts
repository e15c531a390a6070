/** What is wrong with a workflow, read line by line: the files keep to the two-space YAML that GitHub's own examples use. */
export const NODE_VERSIONS = ['20', '22', '24'];
export const TEST_LIMIT_MIN = 60;

const PINNED = /^[\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/;
/** The host fills these in with its own folders; a container sees the same folders elsewhere, and only $GITHUB_… says where. */
const HOST_FOLDER = /\$\{\{\s*(?:github\.workspace|runner\.temp)\b/;

/** The jobs of a workflow by name, each with its own lines. */
function jobsOf(text: string): Map<string, string> {
  const [, jobs = ''] = text.split(/^jobs:\n/m);
  const parts = jobs.split(/^ {2}(?=[\w-]+:\n)/m).slice(1);
  return new Map(parts.map((part) => [part.slice(0, part.indexOf(':')), part]));
}

/** A tag can be moved to other code after we looked at it, a commit cannot. Our own actions come with the checkout. */
export function unpinnedActions(text: string): string[] {
  const used = [...text.matchAll(/^\s*(?:- )?uses:\s*(.+?)\s*$/gm)].map(([, action = '']) => action);
  return used.filter((action) => !action.startsWith('./') && !PINNED.test(action));
}

/** Without the block a job gets what the repository's settings say, which may be everything. */
export function permissionFaults(text: string): string[] {
  const [, block] = /^permissions:(.*\n(?: {2}.*\n)*)/m.exec(text) ?? [];
  if (block === undefined) return ['the workflow has no permissions block'];
  return /write/.test(block) ? ['only a job may be given a right to write'] : [];
}

export function jobsWithoutLimit(text: string): string[] {
  return [...jobsOf(text)]
    .filter(([, job]) => !/^ {4}timeout-minutes: \d+$/m.test(job))
    .map(([name]) => name);
}

export function jobsNamingHostFolders(text: string): string[] {
  return [...jobsOf(text)]
    .filter(([, job]) => /^ {4}container:/m.test(job) && HOST_FOLDER.test(job))
    .map(([name]) => name);
}

/** What the workflow that runs the whole check lacks. */
export function testMatrixFaults(text: string): string[] {
  const job = jobsOf(text).get('test') ?? '';
  const [, versions = ''] = /^ {8}node: \[(.*)\]$/m.exec(job) ?? [];
  const tested = versions.split(',').map((version) => version.trim());
  const faults = NODE_VERSIONS.filter((version) => !tested.includes(version)).map(
    (version) => `Node ${version} is not in the matrix`,
  );
  if (!new RegExp(`^ {4}timeout-minutes: ${TEST_LIMIT_MIN}$`, 'm').test(job))
    faults.push(`the limit is not ${TEST_LIMIT_MIN} minutes`);
  return faults;
}
